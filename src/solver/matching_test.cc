// SPDX-License-Identifier: Apache-2.0
#include "solver/matching.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <random>

namespace trainyard::solver {
namespace {

using Counts = std::vector<std::int64_t>;
using Weights = std::vector<std::vector<double>>;

double WeightOf(const std::vector<TypePairs>& found, const Weights& weights) {
  double sum = 0;
  for (const TypePairs& pairs : found) {
    sum += weights[pairs.a][pairs.b] * static_cast<double>(pairs.pairs);
  }
  return sum;
}

// Nobody is paired twice.
void ExpectMatching(const std::vector<TypePairs>& found, Counts counts) {
  for (const TypePairs& pairs : found) {
    EXPECT_LE(pairs.a, pairs.b);
    EXPECT_GT(pairs.pairs, 0);
    counts[pairs.a] -= pairs.pairs;
    counts[pairs.b] -= pairs.pairs;
  }
  EXPECT_GE(*std::min_element(counts.begin(), counts.end()), 0);
}

// The same nodes, each a type of its own: LEMON's matching of the whole graph.
double PlainOptimum(const Counts& counts, const Weights& weights) {
  std::vector<std::size_t> types;
  for (std::size_t t = 0; t < counts.size(); ++t) {
    types.insert(types.end(), static_cast<std::size_t>(counts[t]), t);
  }
  Weights all(types.size(), std::vector<double>(types.size()));
  for (std::size_t u = 0; u < types.size(); ++u) {
    for (std::size_t v = 0; v < types.size(); ++v) {
      all[u][v] = weights[types[u]][types[v]];
    }
  }
  return WeightOf(MatchByType(Counts(types.size(), 1), all), all);
}

// All matchings, one after the other.
double BruteForce(const Weights& weights, std::vector<std::size_t> free) {
  if (free.empty()) {
    return 0;
  }
  const std::size_t u = free.back();
  free.pop_back();
  double best = BruteForce(weights, free);
  for (std::size_t i = 0; i < free.size(); ++i) {
    std::vector<std::size_t> rest = free;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
    best = std::max(best, weights[u][free[i]] + BruteForce(weights, rest));
  }
  return best;
}

class Instances {
 public:
  explicit Instances(unsigned seed) : random_(seed) {}

  // `levels`: how many different weights there are; few make ties.
  Weights MakeWeights(std::size_t types, int levels) {
    Weights weights(types, std::vector<double>(types));
    for (std::size_t a = 0; a < types; ++a) {
      for (std::size_t b = a; b < types; ++b) {
        weights[a][b] = weights[b][a] = Below(levels) / static_cast<double>(levels);
      }
    }
    return weights;
  }
  Counts MakeCounts(std::size_t types, int most) {
    Counts counts(types);
    std::generate(counts.begin(), counts.end(), [&] { return Below(most + 1); });
    return counts;
  }

 private:
  int Below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }
  std::mt19937 random_;
};

TEST(MatchByTypeTest, ThePairOfTheLargestSumIsMade) {
  const Weights weights{{0, 3, 2}, {3, 0, 4}, {2, 4, 0}};
  const std::vector<TypePairs> found = MatchByType({1, 1, 1}, weights);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].a, 1U);
  EXPECT_EQ(found[0].b, 2U);
}

TEST(MatchByTypeTest, NobodyAndNothingToGain) {
  EXPECT_TRUE(MatchByType({}, {}).empty());
  EXPECT_TRUE(MatchByType({5}, {{0}}).empty());
  EXPECT_TRUE(MatchByType({4, 4}, {{0, -1}, {-1, 0}}).empty());
}

TEST(MatchByTypeTest, OneOfAnOddNumberStaysSingle) {
  const std::vector<TypePairs> found = MatchByType({1001}, {{0.5}});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].pairs, 500);
}

// 2 x 3 pairs of their own kind are worth less than mixed pairs, of which there can be 5.
TEST(MatchByTypeTest, MixedPairsLeaveSomeSingle) {
  const Weights weights{{0.1, 1}, {1, 0}};
  const std::vector<TypePairs> found = MatchByType({100, 60}, weights);
  EXPECT_NEAR(WeightOf(found, weights), 60 + 20 * 0.1, 1e-9);
}

TEST(MatchByTypeTest, IsAsGoodAsTryingEverything) {
  Instances instances(7);
  for (int i = 0; i < 200; ++i) {
    const Weights weights = instances.MakeWeights(7, i % 2 == 0 ? 4 : 1000);
    std::vector<std::size_t> all{0, 1, 2, 3, 4, 5, 6};
    EXPECT_NEAR(WeightOf(MatchByType(Counts(7, 1), weights), weights), BruteForce(weights, all),
                1e-9);
  }
}

TEST(MatchByTypeTest, IsAsGoodAsNodeByNode) {
  Instances instances(11);
  for (int i = 0; i < 150; ++i) {
    const std::size_t types = 1 + static_cast<std::size_t>(i) % 6;
    const Weights weights = instances.MakeWeights(types, i % 3 == 0 ? 3 : 1000);
    const Counts counts = instances.MakeCounts(types, 25);
    const std::vector<TypePairs> found = MatchByType(counts, weights);
    ExpectMatching(found, counts);
    const double plain = PlainOptimum(counts, weights);
    EXPECT_NEAR(WeightOf(found, weights), plain, 1e-9 * plain) << "instance " << i;
  }
}

TEST(MatchByTypeTest, EqualInputsGiveEqualPairs) {
  Instances instances(3);
  const Weights weights = instances.MakeWeights(8, 3);
  const Counts counts = instances.MakeCounts(8, 40);
  EXPECT_EQ(MatchByType(counts, weights), MatchByType(counts, weights));
}

TEST(MatchingMemoTest, AnswersAsAskedWhateverItWasAskedBefore) {
  MatchingMemo memo;
  for (int round = 0; round < 3; ++round) {
    for (std::int64_t nodes = 1; nodes <= 50; ++nodes) {  // more than it remembers
      const std::vector<std::int64_t> counts{nodes, 3};
      const std::vector<std::vector<double>> weights{{1, 2}, {2, 0.5 + static_cast<double>(nodes)}};
      EXPECT_EQ(memo.Match(counts, weights), MatchByType(counts, weights));
    }
  }
}

TEST(MatchByTypeTest, MatchesManyNodesOfAFewTypes) {
  Instances instances(5);
  for (int i = 0; i < 5; ++i) {
    const Weights weights = instances.MakeWeights(16, 1000);
    const Counts counts = instances.MakeCounts(16, 125);
    ExpectMatching(MatchByType(counts, weights), counts);
  }
}

TEST(AssignToClassesTest, TheSumOfCostsIsLeast) {
  const double never = std::numeric_limits<double>::infinity();
  const std::vector<std::vector<double>> costs{{1, 5, 9}, {1, 2, 9}, {never, 4, 3}};
  EXPECT_EQ(AssignToClasses(costs, {1, 1, 1}), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(AssignToClasses(costs, {2, 2, 0}), (std::vector<std::size_t>{0, 0, 1}));
}

}  // namespace
}  // namespace trainyard::solver
