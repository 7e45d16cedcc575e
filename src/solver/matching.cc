// SPDX-License-Identifier: Apache-2.0
// C++17: see CMakeLists.txt.
#include "solver/matching.h"

#if defined(__clang__)
#pragma clang diagnostic ignored "-Wc++20-attribute-extensions"  // CHECK says [[unlikely]]
#elif defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // LEMON copies status maps before setting
#endif

#include <lemon/matching.h>
#include <lemon/network_simplex.h>
#include <lemon/smart_graph.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "base/check.h"

namespace trainyard::solver {
namespace {

using Weight = std::int64_t;
using Weights = std::vector<std::vector<Weight>>;
using Counts = std::vector<std::int64_t>;
using PairCounts = std::map<std::pair<std::size_t, std::size_t>, std::int64_t>;  // first <= second

constexpr double kResolution = 0x1p40;  // of the largest weight
constexpr std::int64_t kFewest = 3;     // pairs of two types that are matched node by node

Weights Rounded(const std::vector<std::vector<double>>& weights) {
  double largest = 0;
  for (const std::vector<double>& row : weights) {
    for (const double weight : row) {
      largest = std::max(largest, weight);
    }
  }
  Weights rounded(weights.size(), std::vector<Weight>(weights.size(), 0));
  for (std::size_t a = 0; a < weights.size() && largest > 0; ++a) {
    for (std::size_t b = 0; b < weights.size(); ++b) {
      const double weight = std::max(weights[std::min(a, b)][std::max(a, b)], 0.0);
      rounded[a][b] = std::llround(weight / largest * kResolution);
    }
  }
  return rounded;
}

// ----------------------------------------------------------------------------- half a solution

// The matching in which halves of pairs are allowed, rounded down: a transport of the nodes of each
// type to the nodes of each type.
class Transport {
 public:
  Transport(const Counts& counts, const Weights& weights) : counts_(counts), weights_(weights) {
    for (std::size_t t = 0; t < counts.size(); ++t) {
      from_.push_back(graph_.addNode());
      to_.push_back(graph_.addNode());
    }
    stay_from_ = graph_.addNode();
    stay_to_ = graph_.addNode();
  }

  PairCounts Solve() {
    using Simplex = lemon::NetworkSimplex<lemon::SmartDigraph, std::int64_t, Weight>;
    AddArcs();
    lemon::SmartDigraph::ArcMap<Weight> cost(graph_, 0);
    for (std::size_t i = 0; i < arcs_.size(); ++i) {
      cost[arcs_[i].arc] = -weights_[arcs_[i].a][arcs_[i].b];
    }
    lemon::SmartDigraph::NodeMap<std::int64_t> supply(graph_, 0);
    std::int64_t all = 0;
    for (std::size_t t = 0; t < counts_.size(); ++t) {
      supply[from_[t]] = counts_[t];
      supply[to_[t]] = -counts_[t];
      all += counts_[t];
    }
    supply[stay_from_] = all;
    supply[stay_to_] = -all;
    Simplex simplex(graph_);
    CHECK(simplex.costMap(cost).supplyMap(supply).run() == Simplex::OPTIMAL);
    PairCounts doubled;
    for (const Arc& arc : arcs_) {
      doubled[std::minmax(arc.a, arc.b)] += simplex.flow(arc.arc);
    }
    PairCounts pairs;
    for (const auto& [types, twice] : doubled) {
      if (twice >= 2) {
        pairs[types] = twice / 2;
      }
    }
    return pairs;
  }

 private:
  struct Arc {
    std::size_t a = 0;
    std::size_t b = 0;
    lemon::SmartDigraph::Arc arc;
  };

  void AddArcs() {
    for (std::size_t a = 0; a < counts_.size(); ++a) {
      for (std::size_t b = 0; b < counts_.size(); ++b) {
        if (weights_[a][b] > 0) {
          arcs_.push_back({a, b, graph_.addArc(from_[a], to_[b])});
        }
      }
      graph_.addArc(from_[a], stay_to_);
      graph_.addArc(stay_from_, to_[a]);
    }
    graph_.addArc(stay_from_, stay_to_);
  }

  const Counts& counts_;
  const Weights& weights_;
  lemon::SmartDigraph graph_;
  std::vector<lemon::SmartDigraph::Node> from_;
  std::vector<lemon::SmartDigraph::Node> to_;
  lemon::SmartDigraph::Node stay_from_;
  lemon::SmartDigraph::Node stay_to_;
  std::vector<Arc> arcs_;
};

// --------------------------------------------------------------------------------- node by node

// The matching of a graph with `counts[t]` nodes of each type.
class NodeMatching {
 public:
  NodeMatching(const Counts& counts, const Weights& weights)
      : weights_(weights), edge_weights_(graph_) {
    for (std::size_t t = 0; t < counts.size(); ++t) {
      for (std::int64_t i = 0; i < counts[t]; ++i) {
        graph_.addNode();
        types_.push_back(t);
      }
    }
    for (std::size_t u = 0; u < types_.size(); ++u) {
      for (std::size_t v = u + 1; v < types_.size(); ++v) {
        if (const Weight weight = weights[types_[u]][types_[v]]; weight > 0) {
          edge_weights_[graph_.addEdge(NodeAt(u), NodeAt(v))] = weight;
        }
      }
    }
  }

  void Solve() {
    Algorithm algorithm(graph_, edge_weights_);
    algorithm.run();
    mates_.assign(types_.size(), types_.size());
    potentials_.assign(types_.size(), 0);
    for (std::size_t u = 0; u < types_.size(); ++u) {
      const Graph::Node mate = algorithm.mate(NodeAt(u));
      mates_[u] =
          mate == lemon::INVALID ? types_.size() : static_cast<std::size_t>(Graph::id(mate));
      potentials_[u] = algorithm.nodeValue(NodeAt(u));
    }
    KeepBlossoms(algorithm);
  }

  [[nodiscard]] PairCounts Pairs() const {
    PairCounts pairs;
    for (std::size_t u = 0; u < types_.size(); ++u) {
      if (IsMatched(u) && u < mates_[u]) {
        ++pairs[std::minmax(types_[u], types_[mates_[u]])];
      }
    }
    return pairs;
  }

  // Whether more nodes may be paired as some of these types are, and the whole is still optimal.
  // New nodes take the potential and the blossoms of a pair that lies in all its blossoms whole.
  // Then they keep every condition that their models keep, but for one: a node and its model, or
  // two of its likes, form a pair that is new.
  [[nodiscard]] bool CanRepeatPair(std::size_t a, std::size_t b) const {
    for (std::size_t u = 0; u < types_.size(); ++u) {
      if (IsMatched(u) && types_[u] == a && types_[mates_[u]] == b &&
          blossoms_[u] == blossoms_[mates_[u]] && CanRepeat(u) && CanRepeat(mates_[u])) {
        return true;
      }
    }
    return false;
  }
  // Likewise a node that stays single; in a blossom it would be one too many.
  [[nodiscard]] bool CanRepeatSingle(std::size_t type) const {
    for (std::size_t u = 0; u < types_.size(); ++u) {
      if (!IsMatched(u) && types_[u] == type && blossoms_[u].empty() && CanRepeat(u)) {
        return true;
      }
    }
    return false;
  }

 private:
  using Graph = lemon::SmartGraph;
  using Algorithm = lemon::MaxWeightedMatching<Graph, Graph::EdgeMap<Weight>>;

  [[nodiscard]] static Graph::Node NodeAt(std::size_t u) {
    return Graph::nodeFromId(static_cast<int>(u));
  }
  [[nodiscard]] bool IsMatched(std::size_t u) const { return mates_[u] < types_.size(); }

  [[nodiscard]] bool CanRepeat(std::size_t u) const {
    Weight sum = 2 * potentials_[u];
    for (const std::size_t blossom : blossoms_[u]) {
      sum += blossom_values_[blossom];
    }
    return sum >= Algorithm::dualScale * weights_[types_[u]][types_[u]];
  }

  void KeepBlossoms(const Algorithm& algorithm) {
    blossoms_.assign(types_.size(), {});
    for (int i = 0; i < algorithm.blossomNum(); ++i) {
      if (const Weight value = algorithm.blossomValue(i); value != 0) {
        for (Algorithm::BlossomIt node(algorithm, i); node != lemon::INVALID; ++node) {
          blossoms_[static_cast<std::size_t>(Graph::id(node))].push_back(blossom_values_.size());
        }
        blossom_values_.push_back(value);
      }
    }
  }

  const Weights& weights_;
  std::vector<std::size_t> types_;  // by node
  Graph graph_;
  Graph::EdgeMap<Weight> edge_weights_;
  std::vector<std::size_t> mates_;  // by node; the number of nodes: none
  std::vector<Weight> potentials_;
  std::vector<std::vector<std::size_t>> blossoms_;  // by node, ascending
  std::vector<Weight> blossom_values_;
};

// ------------------------------------------------------------------------------------ together

class ByType {
 public:
  ByType(const Counts& counts, const Weights& weights)
      : counts_(counts), weights_(weights), guess_(Transport(counts, weights).Solve()) {}

  PairCounts Solve() {
    for (std::int64_t few = kFewest;; few *= 2) {
      SetAside(few);
      NodeMatching matching(rest_, weights_);
      matching.Solve();
      if (IsOptimalForAll(matching)) {
        PairCounts pairs = matching.Pairs();
        for (const auto& [types, count] : aside_) {
          pairs[types] += count;
        }
        return pairs;
      }
    }
  }

 private:
  // Of each two types as many pairs as the guess has beyond `few`, and of the nodes that it leaves
  // single likewise.
  void SetAside(std::int64_t few) {
    aside_.clear();
    rest_ = counts_;
    Counts single = counts_;
    for (const auto& [types, pairs] : guess_) {
      single[types.first] -= pairs;
      single[types.second] -= pairs;
      if (pairs > few) {
        aside_[types] = pairs - few;
        rest_[types.first] -= pairs - few;
        rest_[types.second] -= pairs - few;
      }
    }
    single_aside_.assign(counts_.size(), false);
    for (std::size_t t = 0; t < counts_.size(); ++t) {
      if (single[t] > few) {
        single_aside_[t] = true;
        rest_[t] -= single[t] - few;
      }
    }
  }

  [[nodiscard]] bool IsOptimalForAll(const NodeMatching& matching) const {
    for (std::size_t t = 0; t < counts_.size(); ++t) {
      if (single_aside_[t] && !matching.CanRepeatSingle(t)) {
        return false;
      }
    }
    return std::all_of(aside_.begin(), aside_.end(), [&matching](const auto& pairs) {
      return matching.CanRepeatPair(pairs.first.first, pairs.first.second);
    });
  }

  const Counts& counts_;
  const Weights& weights_;
  const PairCounts guess_;
  Counts rest_;  // to be matched node by node
  PairCounts aside_;
  std::vector<bool> single_aside_;
};

}  // namespace

std::vector<TypePairs> MatchByType(const std::vector<std::int64_t>& counts,
                                   const std::vector<std::vector<double>>& weights) {
  CHECK(counts.size() == weights.size());
  const Weights rounded = Rounded(weights);
  std::vector<TypePairs> found;
  for (const auto& [types, pairs] : ByType(counts, rounded).Solve()) {
    found.push_back({types.first, types.second, pairs});
  }
  return found;
}

std::vector<std::size_t> AssignToClasses(const std::vector<std::vector<double>>& costs,
                                         const std::vector<std::int64_t>& room) {
  using Graph = lemon::SmartDigraph;
  double largest = 0;
  for (const std::vector<double>& row : costs) {
    for (const double cost : row) {
      largest = std::isfinite(cost) ? std::max(largest, cost) : largest;
    }
  }
  const double scale = largest > 0 ? kResolution / largest : 0;
  Graph graph;
  graph.reserveNode(static_cast<int>(costs.size() + room.size()));
  std::vector<Graph::Node> rows;
  std::vector<Graph::Node> classes;
  std::generate_n(std::back_inserter(rows), costs.size(), [&graph] { return graph.addNode(); });
  std::generate_n(std::back_inserter(classes), room.size(), [&graph] { return graph.addNode(); });
  struct Place {
    Graph::Arc arc;
    std::size_t row;
    std::size_t of;
  };
  std::vector<Place> places;
  for (std::size_t row = 0; row < costs.size(); ++row) {
    for (std::size_t of = 0; of < room.size(); ++of) {
      if (std::isfinite(costs[row][of])) {
        places.push_back({graph.addArc(rows[row], classes[of]), row, of});
      }
    }
  }
  Graph::ArcMap<Weight> cost(graph);
  for (const Place& place : places) {
    cost[place.arc] = std::llround(costs[place.row][place.of] * scale);
  }
  Graph::NodeMap<std::int64_t> supply(graph);
  for (const Graph::Node row : rows) {
    supply[row] = 1;
  }
  for (std::size_t of = 0; of < room.size(); ++of) {
    supply[classes[of]] = -room[of];
  }
  // Classes may have room left: supplies are the least that leaves rows, and the most that comes.
  lemon::NetworkSimplex<Graph, std::int64_t, Weight> simplex(graph);
  simplex.costMap(cost).supplyMap(supply).supplyType(
      lemon::NetworkSimplex<Graph, std::int64_t, Weight>::GEQ);
  CHECK(simplex.run() == (lemon::NetworkSimplex<Graph, std::int64_t, Weight>::OPTIMAL));
  std::vector<std::size_t> taken(costs.size(), room.size());
  for (const Place& place : places) {
    if (simplex.flow(place.arc) > 0) {
      taken[place.row] = place.of;
    }
  }
  return taken;
}

const std::vector<TypePairs>& MatchingMemo::Match(const std::vector<std::int64_t>& counts,
                                                  const std::vector<std::vector<double>>& weights) {
  constexpr std::size_t kMost = 32;
  const auto known = std::find_if(answers_.begin(), answers_.end(), [&](const Answer& answer) {
    return answer.counts == counts && answer.weights == weights;
  });
  if (known != answers_.end()) {
    return known->pairs;
  }
  Answer answer{counts, weights, MatchByType(counts, weights)};
  if (answers_.size() < kMost) {
    answers_.push_back(std::move(answer));
    return answers_.back().pairs;
  }
  Answer& oldest = answers_[next_];
  next_ = (next_ + 1) % kMost;
  oldest = std::move(answer);
  return oldest.pairs;
}

}  // namespace trainyard::solver
