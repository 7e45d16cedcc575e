// SPDX-License-Identifier: Apache-2.0
// Pairs nodes so that the sum of the weights of the pairs is largest; nodes may stay single. Nodes
// of one type are interchangeable, so what counts is how many pairs each two types form.
#pragma once

#include <cstdint>
#include <vector>

namespace trainyard::solver {

// So many pairs of one node of type `a` and one of type `b`; a <= b.
struct TypePairs {
  std::size_t a = 0;
  std::size_t b = 0;
  std::int64_t pairs = 0;

  friend bool operator==(const TypePairs& x, const TypePairs& y) {
    return x.a == y.a && x.b == y.b && x.pairs == y.pairs;
  }
};

// A matching of maximum weight among `counts[t]` nodes of each type t. `weights[a][b]` is that of a
// pair, symmetric and finite; a pair of weight <= 0 is not made. Every node a type of its own: the
// plain matching of a graph.
//
// The weights are rounded to 2^-40 of the largest one; for these the optimum is exact, and equal
// inputs give equal outputs. Which of several optima is found depends on the order of the types and
// on nothing else: a caller whose types have an order of their own gets the same pairs in whatever
// order its nodes come.
//
// Only a few nodes of each type are really matched; the others are paired like them, and the dual
// solution proves that this is optimal for all (NodeMatching::CanRepeatPair). O(types^3), about,
// however many nodes there are.
[[nodiscard]] std::vector<TypePairs> MatchByType(const std::vector<std::int64_t>& counts,
                                                 const std::vector<std::vector<double>>& weights);

// For each row the class of places that it takes, so that the sum of `costs[row][class]` is least;
// `room`: places of each class. An infinite cost: not for that row. Costs are rounded to 2^-40 of
// the largest finite one; equal inputs give equal outputs. REQUIRES: costs are >= 0, and there is
// room for all rows where they may be.
[[nodiscard]] std::vector<std::size_t> AssignToClasses(
    const std::vector<std::vector<double>>& costs, const std::vector<std::int64_t>& room);

// Remembers questions and their answers: from one decision to the next most stay the same.
class MatchingMemo {
 public:
  // As MatchByType; valid until the next call.
  [[nodiscard]] const std::vector<TypePairs>& Match(
      const std::vector<std::int64_t>& counts, const std::vector<std::vector<double>>& weights);

 private:
  struct Answer {
    std::vector<std::int64_t> counts;
    std::vector<std::vector<double>> weights;
    std::vector<TypePairs> pairs;
  };
  std::vector<Answer> answers_;  // a ring
  std::size_t next_ = 0;
};

}  // namespace trainyard::solver
