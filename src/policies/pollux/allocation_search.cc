// SPDX-License-Identifier: Apache-2.0
#include "policies/pollux/allocation_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "base/check.h"

namespace trainyard::policies {
namespace {

constexpr double kLeastSpeedup = 1e-3;
constexpr double kCrossover = 0.9;
constexpr double kReset = 0.1;  // that a row is as in the base
constexpr double kClear = 0.1;  // that a row loses GPUs, and that it does on a node
// Attempts to make new matrices that may fail in a row before a generation is taken as it is.
constexpr int kAttemptsInVain = 3;
constexpr double kFarthest = std::numeric_limits<double>::infinity();

struct MatrixOrder {
  bool operator()(const AllocationMatrix* a, const AllocationMatrix* b) const {
    const std::span<const std::uint8_t> one = a->cells();
    const std::span<const std::uint8_t> other = b->cells();
    return std::lexicographical_compare(one.begin(), one.end(), other.begin(), other.end());
  }
};
// Each once.
using Known = std::set<const AllocationMatrix*, MatrixOrder>;

struct Individual {
  AllocationMatrix matrix;
  Objectives objectives;
  double crowding = 0;  // how far its neighbours of the same front are
};

using Population = std::vector<Individual>;

// The fronts, best first, as positions: no member of a front is dominated by another one that is
// not in an earlier front. O(P log P + P x fronts).
std::vector<std::vector<std::size_t>> FrontsOf(const Population& population) {
  std::vector<std::size_t> order(population.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const Objectives& one = population[a].objectives;
    const Objectives& other = population[b].objectives;
    return std::pair(one.unfitness, one.unused) < std::pair(other.unfitness, other.unused);
  });
  // In this order the last member of a front is the only one that has to be looked at.
  std::vector<std::vector<std::size_t>> fronts;
  for (const std::size_t next : order) {
    const auto front = std::find_if(fronts.begin(), fronts.end(), [&](const auto& members) {
      return !population[members.back()].objectives.Dominates(population[next].objectives);
    });
    if (front == fronts.end()) {
      fronts.push_back({next});
    } else {
      front->push_back(next);
    }
  }
  for (std::vector<std::size_t>& front : fronts) {
    std::sort(front.begin(), front.end());
  }
  return fronts;
}

// The mean over both objectives of the gap between the neighbours of each member; of members with
// equal objectives only the first counts.
void SetCrowding(std::span<const std::size_t> front, Population& population) {
  for (const std::size_t member : front) {
    population[member].crowding = front.size() <= 2 ? kFarthest : 0;
  }
  if (front.size() <= 2) {
    return;
  }
  std::vector<std::size_t> different;
  {
    std::vector<std::size_t> order(front.begin(), front.end());
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const Objectives& one = population[a].objectives;
      const Objectives& other = population[b].objectives;
      return std::pair(one.unfitness, one.unused) < std::pair(other.unfitness, other.unused);
    });
    for (const std::size_t member : order) {
      if (different.empty() ||
          !(population[different.back()].objectives == population[member].objectives)) {
        different.push_back(member);
      }
    }
  }
  if (different.size() <= 2) {
    for (const std::size_t member : different) {
      population[member].crowding = kFarthest;
    }
    return;
  }
  for (double Objectives::*objective : {&Objectives::unfitness, &Objectives::unused}) {
    const auto value = [&](std::size_t i) { return population[i].objectives.*objective; };
    std::stable_sort(different.begin(), different.end(),
                     [&](std::size_t a, std::size_t b) { return value(a) < value(b); });
    const double range = value(different.back()) - value(different.front());
    population[different.front()].crowding = kFarthest;
    population[different.back()].crowding = kFarthest;
    for (std::size_t i = 1; i + 1 < different.size() && range > 0; ++i) {
      population[different[i]].crowding +=
          (value(different[i + 1]) - value(different[i - 1])) / range / 2;
    }
  }
}

// The best of a population: whole fronts as long as they fit, and of the next one those that have
// the most room around them.
Population Survivors(Population population, std::size_t most, RandomStream& random) {
  Population survivors;
  survivors.reserve(most);
  for (std::vector<std::size_t>& front : FrontsOf(population)) {
    if (survivors.size() >= most) {
      break;
    }
    SetCrowding(front, population);
    if (survivors.size() + front.size() > most) {
      random.Shuffle(std::span(front));
      std::stable_sort(front.begin(), front.end(), [&](std::size_t a, std::size_t b) {
        return population[a].crowding > population[b].crowding;
      });
      front.resize(most - survivors.size());
    }
    for (const std::size_t member : front) {
      survivors.push_back(std::move(population[member]));
    }
  }
  return survivors;
}

class GeneticSearch {
 public:
  GeneticSearch(const SearchProblem& problem, const SearchLimits& limits, RandomStream& random)
      : problem_(problem),
        limits_(limits),
        random_(random),
        some_row_(kReset),
        cleared_row_(kClear),
        some_cell_(1.0 / static_cast<double>(problem.jobs.size())) {}

  SearchResult Search(std::vector<AllocationMatrix> initial) {
    Begin(std::move(initial));
    double best = Best();
    int in_vain = 0;
    for (int generation = 1; generation < limits_.generations; ++generation) {
      if (!Advance() || (limits_.patience && in_vain >= *limits_.patience)) {
        break;
      }
      const double now = Best();
      in_vain = now < best ? 0 : in_vain + 1;
      best = std::min(best, now);
    }
    return Result();
  }

 private:
  void Begin(std::vector<AllocationMatrix> initial) {
    for (AllocationMatrix& matrix : initial) {
      problem_.Repair(matrix, random_);
    }
    Known known;
    Population population;
    for (AllocationMatrix& matrix : initial) {
      if (known.insert(&matrix).second) {
        population.push_back({.objectives = ObjectivesOf(problem_, matrix)});
        population.back().matrix = matrix;
      }
    }
    population_ = Survivors(std::move(population), limits_.population, random_);
  }

  [[nodiscard]] double Best() const {
    double best = kFarthest;
    for (const Individual& one : population_) {
      best = std::min(best, one.objectives.unfitness);
    }
    return best;
  }

  // One generation. False: no new matrix was found.
  bool Advance() {
    Population all = std::move(population_);
    const std::size_t parents = all.size();
    all.reserve(parents + limits_.population);
    Known known;
    for (const Individual& one : all) {
      known.insert(&one.matrix);
    }
    int in_vain = 0;
    while (all.size() < parents + limits_.population && in_vain < kAttemptsInVain) {
      const std::size_t before = all.size();
      for (AllocationMatrix& child :
           Children(std::span(all).first(parents), parents + limits_.population - before)) {
        if (all.size() == parents + limits_.population) {
          break;
        }
        Mutate(child);
        problem_.Repair(child, random_);
        if (known.contains(&child)) {
          continue;
        }
        all.push_back({.objectives = ObjectivesOf(problem_, child)});
        all.back().matrix = std::move(child);
        known.insert(&all.back().matrix);
      }
      in_vain = all.size() > before ? 0 : in_vain + 1;
    }
    const bool found = all.size() > parents;
    population_ = Survivors(std::move(all), limits_.population, random_);
    return found;
  }

  // As many children of pairs of parents as are wanted, one more where that is odd.
  std::vector<AllocationMatrix> Children(std::span<const Individual> parents, std::size_t wanted) {
    const std::size_t pairs = (wanted + 1) / 2;
    std::vector<AllocationMatrix> children;
    children.reserve(2 * pairs);
    Tournament tournament(parents, random_);
    for (std::size_t i = 0; i < 2 * pairs; ++i) {
      children.push_back(tournament.Next().matrix);
    }
    for (std::size_t i = 0; i < pairs; ++i) {
      if (random_.Chance(kCrossover)) {
        const std::size_t cut = random_.Below(problem_.jobs.size());
        for (std::size_t job = 0; job < cut; ++job) {
          const auto row = children[i].row(job);
          std::swap_ranges(row.begin(), row.end(), children[pairs + i].row(job).begin());
        }
      }
    }
    return children;
  }

  // Who has children: of two, the one that dominates; else the one with more room around it.
  class Tournament {
   public:
    Tournament(std::span<const Individual> all, RandomStream& random)
        : all_(all), random_(random), order_(all.size()) {
      std::iota(order_.begin(), order_.end(), std::size_t{0});
      next_ = order_.size();
    }
    const Individual& Next() {
      const Individual& one = Draw();
      const Individual& other = Draw();
      if (one.objectives.Dominates(other.objectives)) {
        return one;
      }
      if (other.objectives.Dominates(one.objectives)) {
        return other;
      }
      if (one.crowding != other.crowding) {
        return one.crowding > other.crowding ? one : other;
      }
      return random_.Chance(0.5) ? one : other;
    }

   private:
    // One permutation after the other.
    const Individual& Draw() {
      if (next_ == order_.size()) {
        random_.Shuffle(std::span(order_));
        next_ = 0;
      }
      return all_[order_[next_++]];
    }
    std::span<const Individual> all_;
    RandomStream& random_;
    std::vector<std::size_t> order_;
    std::size_t next_ = 0;
  };

  void Mutate(AllocationMatrix& matrix) {
    const std::size_t jobs = matrix.jobs();
    for (std::size_t job = some_row_.Next(random_); job < jobs;
         job += 1 + some_row_.Next(random_)) {
      const auto base = problem_.base.row(job);
      std::copy(base.begin(), base.end(), matrix.row(job).begin());
    }
    for (std::size_t job = cleared_row_.Next(random_); job < jobs;
         job += 1 + cleared_row_.Next(random_)) {
      const std::span<std::uint8_t> row = matrix.row(job);
      for (std::size_t node = cleared_row_.Next(random_); node < row.size();
           node += 1 + cleared_row_.Next(random_)) {
        row[node] = 0;
      }
    }
    Grow(matrix);
  }

  void CountUse(const AllocationMatrix& matrix) {
    const std::size_t nodes = matrix.nodes();
    used_.assign(nodes, 0);
    present_.assign(nodes, 0);
    for (std::size_t job = 0; job < matrix.jobs(); ++job) {
      const std::span<const std::uint8_t> row = matrix.row(job);
      for (std::size_t node = 0; node < nodes; ++node) {
        used_[node] += row[node];
        present_[node] += row[node] > 0 ? 1 : 0;
      }
    }
  }

  // Of the jobs that are on the node, each with that chance.
  void RaisePresent(AllocationMatrix& matrix, std::size_t node, double chance) {
    for (std::size_t job = 0, left = static_cast<std::size_t>(present_[node]); left > 0; ++job) {
      if (std::uint8_t& cell = matrix.row(job)[node]; cell > 0) {
        --left;
        if (random_.Chance(chance)) {
          Raise(cell, problem_.capacity[node]);
        }
      }
    }
  }

  // Gives GPUs of nodes with free ones to jobs: to those that are there already, and to others.
  void Grow(AllocationMatrix& matrix) {
    const std::size_t nodes = matrix.nodes();
    CountUse(matrix);
    const double any = 1.0 / static_cast<double>(matrix.jobs());
    for (std::size_t node = 0; node < nodes; ++node) {
      if (used_[node] >= problem_.capacity[node]) {
        continue;
      }
      // The chances are those of the cell being chosen for either reason.
      newcomers_.clear();
      for (std::size_t job = some_cell_.Next(random_); job < matrix.jobs();
           job += 1 + some_cell_.Next(random_)) {
        if (matrix.row(job)[node] == 0) {
          newcomers_.push_back(job);
        }
      }
      if (present_[node] > 0) {
        const double there = 1.0 / present_[node];
        RaisePresent(matrix, node, any + there - any * there);
      }
      for (const std::size_t job : newcomers_) {
        Raise(matrix.row(job)[node], problem_.capacity[node]);
      }
    }
  }

  void Raise(std::uint8_t& cell, std::uint8_t most) {
    if (cell < most) {
      cell = static_cast<std::uint8_t>(cell + random_.Below(std::size_t{1} + most - cell));
    }
  }

  SearchResult Result() {
    SearchResult result;
    const std::vector<std::vector<std::size_t>> fronts = FrontsOf(population_);
    for (const std::size_t member : fronts.front()) {
      result.front.push_back(std::move(population_[member].matrix));
      result.objectives.push_back(population_[member].objectives);
    }
    const auto best = std::min_element(
        result.objectives.begin(), result.objectives.end(),
        [](const Objectives& a, const Objectives& b) { return a.unfitness < b.unfitness; });
    result.best = static_cast<std::size_t>(best - result.objectives.begin());
    return result;
  }

  const SearchProblem& problem_;
  const SearchLimits& limits_;
  RandomStream& random_;
  const Skips some_row_;
  const Skips cleared_row_;
  const Skips some_cell_;
  Population population_;
  std::vector<int> used_;     // GPUs by node
  std::vector<int> present_;  // jobs by node
  std::vector<std::size_t> newcomers_;
};

// Takes GPUs that the job does not use, from the last node on.
void CutUnused(std::span<std::uint8_t> row, const SearchJob& job) {
  const int gpus = std::accumulate(row.begin(), row.end(), 0);
  if (gpus == 0 || job.usable.empty()) {
    return;
  }
  int left = gpus - job.usable[static_cast<std::size_t>(gpus - 1)];
  for (std::size_t node = row.size(); node > 0 && left > 0; --node) {
    const int cut = std::min<int>(row[node - 1], left);
    row[node - 1] = static_cast<std::uint8_t>(row[node - 1] - cut);
    left -= cut;
  }
}

void CutToMost(std::span<std::uint8_t> row, int most, std::vector<std::size_t>& order,
               RandomStream& random) {
  if (std::accumulate(row.begin(), row.end(), 0) <= most) {
    return;
  }
  order.resize(row.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  random.Shuffle(std::span(order));
  int left = most;
  for (const std::size_t node : order) {
    row[node] = static_cast<std::uint8_t>(std::min<int>(row[node], left));
    left -= row[node];
  }
}

}  // namespace

std::size_t AllocationMatrix::NodesOf(std::size_t job) const {
  std::size_t nodes = 0;
  for (const std::uint8_t gpus : row(job)) {
    nodes += gpus > 0 ? 1 : 0;
  }
  return nodes;
}

double SearchJob::Speedup(std::span<const std::uint8_t> row) const {
  int gpus = 0;
  int nodes = 0;
  for (const std::uint8_t on_node : row) {
    gpus += on_node;
    nodes += on_node > 0 ? 1 : 0;
  }
  if (gpus == 0) {
    return 0;
  }
  const auto index = static_cast<std::size_t>(gpus - 1);
  return nodes > 1 ? on_several[index] : on_one_node[index];
}

void SearchProblem::Repair(AllocationMatrix& matrix, RandomStream& random) const {
  separate(matrix);
  std::vector<std::size_t> order;
  std::vector<std::uint8_t> left = capacity;
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    const std::span<std::uint8_t> row = matrix.row(job);
    CutToMost(row, jobs[job].most_gpus, order, random);
    for (std::size_t node = 0; node < row.size(); ++node) {
      row[node] = std::min(row[node], left[node]);
    }
    CutUnused(row, jobs[job]);
    for (std::size_t node = 0; node < row.size(); ++node) {
      left[node] = static_cast<std::uint8_t>(left[node] - row[node]);
    }
  }
}

bool SearchProblem::IsHarmed(std::size_t job, std::span<const std::uint8_t> row) const {
  const std::optional<RestOfJob>& rest = jobs[job].rest;
  const std::span<const std::uint8_t> held = base.row(job);
  if (!rest || std::equal(row.begin(), row.end(), held.begin()) ||
      std::accumulate(row.begin(), row.end(), 0) < std::accumulate(held.begin(), held.end(), 0)) {
    return false;
  }
  const double speedup = jobs[job].Speedup(row);
  return !(speedup > 0) || rest->Worth(speedup, jobs[job].held_speedup) <= jobs[job].held_speedup;
}

Objectives ObjectivesOf(const SearchProblem& problem, const AllocationMatrix& matrix) {
  double inverse = 0;  // of the speedups, summed
  double speedups = 0;
  std::vector<std::uint8_t> in_use(matrix.nodes());
  for (std::size_t job = 0; job < problem.jobs.size(); ++job) {
    const std::span<const std::uint8_t> row = matrix.row(job);
    const double speedup = problem.jobs[job].Speedup(row);
    speedups += speedup;
    const std::span<const std::uint8_t> held = problem.base.row(job);
    const bool stays = std::equal(row.begin(), row.end(), held.begin());
    const double counted = problem.weight * (stays ? speedup : problem.jobs[job].Moved(speedup));
    inverse += 1 / (counted + kLeastSpeedup);
    for (std::size_t node = 0; node < row.size(); ++node) {
      in_use[node] |= row[node];
    }
  }
  double gpus = 0;
  for (std::size_t node = 0; node < in_use.size(); ++node) {
    gpus += in_use[node] > 0 ? problem.capacity[node] : 0;
  }
  const auto jobs = static_cast<double>(problem.jobs.size());
  return {.unfitness = -jobs / inverse, .unused = gpus > 0 ? -speedups / gpus : 0};
}

SearchResult SearchAllocations(const SearchProblem& problem, std::vector<AllocationMatrix> initial,
                               const SearchLimits& limits, RandomStream& random) {
  CHECK(!initial.empty() && !problem.jobs.empty() && !problem.capacity.empty());
  CHECK(problem.base.jobs() == problem.jobs.size() && problem.separate != nullptr);
  return GeneticSearch(problem, limits, random).Search(std::move(initial));
}

}  // namespace trainyard::policies
