// SPDX-License-Identifier: Apache-2.0
#include "policies/chronus/lease_packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "support/dice.h"

namespace trainyard::policies {
namespace {

std::vector<LeaseDemand> RandomDemands(Dice& dice, int jobs, int most_gpus) {
  std::vector<LeaseDemand> demands;
  for (int i = 0; i < jobs; ++i) {
    LeaseDemand demand{.gpus = 1 << dice.From(0, most_gpus), .window = dice.From(1, 4)};
    demand.need = dice.From(1, demand.window);
    demands.push_back(demand);
  }
  return demands;
}

// Tries everything, job by job.
bool CanBePacked(const std::vector<LeaseDemand>& demands, std::size_t job, LeaseCapacity& free) {
  if (job == demands.size()) {
    return true;
  }
  const LeaseDemand& demand = demands[job];
  for (unsigned set = 0; set < 1U << static_cast<unsigned>(demand.window); ++set) {
    if (__builtin_popcount(set) != demand.need) {
      continue;
    }
    LeaseCapacity rest = free;
    bool fits = true;
    for (std::size_t lease = 0; lease < rest.size(); ++lease) {
      rest[lease] -= (set >> lease & 1U) != 0 ? demand.gpus : 0;
      fits = fits && rest[lease] >= 0;
    }
    if (fits && CanBePacked(demands, job + 1, rest)) {
      return true;
    }
  }
  return false;
}

void ExpectPacked(const std::vector<LeaseDemand>& demands, LeaseCapacity free,
                  const std::vector<Leases>& packed) {
  ASSERT_EQ(packed.size(), demands.size());
  for (std::size_t i = 0; i < demands.size(); ++i) {
    EXPECT_EQ(static_cast<int>(packed[i].size()), demands[i].need);
    EXPECT_TRUE(std::is_sorted(packed[i].begin(), packed[i].end()));
    EXPECT_EQ(std::adjacent_find(packed[i].begin(), packed[i].end()), packed[i].end());
    for (const int lease : packed[i]) {
      EXPECT_GE(lease, 0);
      EXPECT_LT(lease, demands[i].window);
      free[static_cast<std::size_t>(lease)] -= demands[i].gpus;
      EXPECT_GE(free[static_cast<std::size_t>(lease)], 0);
    }
  }
}

TEST(LeasePackingTest, TheLatestLeasesAreTakenFirst) {
  const std::vector<LeaseDemand> demands{{.gpus = 2, .need = 2, .window = 4},
                                         {.gpus = 1, .need = 2, .window = 4}};
  const auto packed = PackLatestFirst(demands, {2});
  ASSERT_TRUE(packed.has_value());
  EXPECT_EQ(packed->at(0), (Leases{2, 3}));
  EXPECT_EQ(packed->at(1), (Leases{0, 1}));
}

TEST(LeasePackingTest, EvenlyMeansWhereMostIsFree) {
  const std::vector<LeaseDemand> demands{{.gpus = 1, .need = 1, .window = 2},
                                         {.gpus = 1, .need = 1, .window = 2}};
  const auto packed = PackEvenly(demands, {2});
  ASSERT_TRUE(packed.has_value());
  EXPECT_EQ(packed->at(0), (Leases{1}));
  EXPECT_EQ(packed->at(1), (Leases{0}));
}

TEST(LeasePackingTest, WhoNeedsMoreThanThereIsBeforeTheDeadlineDoesNotFit) {
  const std::vector<LeaseDemand> late{{.gpus = 1, .need = 3, .window = 2}};
  EXPECT_FALSE(PackLatestFirst(late, {4}).has_value());
  EXPECT_FALSE(PackLeastSlackFirst(late, {4}).has_value());
  EXPECT_FALSE(PackEvenly(late, {4}).has_value());
  const std::vector<LeaseDemand> large{{.gpus = 8, .need = 1, .window = 2}};
  EXPECT_FALSE(PackLatestFirst(large, {4}).has_value());
}

TEST(LeasePackingTest, WhatIsPackedFitsByAllRules) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    Dice dice(seed);
    const std::vector<LeaseDemand> demands = RandomDemands(dice, dice.From(1, 6), 2);
    const LeaseCapacity free{dice.From(1, 8), dice.From(1, 8), dice.From(1, 8), dice.From(1, 8)};
    for (const auto pack : {PackLatestFirst, PackLeastSlackFirst, PackEvenly}) {
      if (const auto packed = pack(demands, free)) {
        ExpectPacked(demands, free, *packed);
      }
    }
  }
}

TEST(LeasePackingTest, LeastSlackFirstFindsEveryPackingOfEqualGangs) {
  int fitting = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    Dice dice(seed);
    const std::vector<LeaseDemand> demands = RandomDemands(dice, dice.From(2, 6), 0);
    LeaseCapacity free{dice.From(1, 4), dice.From(1, 4), dice.From(1, 4), dice.From(1, 4)};
    const bool fits = CanBePacked(demands, 0, free);
    EXPECT_EQ(PackLeastSlackFirst(demands, free).has_value(), fits) << "seed " << seed;
    fitting += fits ? 1 : 0;
  }
  EXPECT_GT(fitting, 50);
  EXPECT_LT(fitting, 350);
}

TEST(LeasePackingTest, TheSmallestWindowIsTheFirstThatFits) {
  const std::vector<LeaseDemand> demands{{.gpus = 4, .need = 5, .window = 6},
                                         {.gpus = 2, .need = 3, .window = 2}};
  // Leases 1 to 5 are full; lease 0 and those from 6 on are free.
  EXPECT_EQ(SmallestWindow(demands, {4}), 8);
  EXPECT_EQ(SmallestWindow({{.gpus = 1, .need = 3, .window = 1}}, {4}), 3);
  EXPECT_EQ(SmallestWindow({{.gpus = 8, .need = 1, .window = 1}}, {4}), std::nullopt);
}

}  // namespace
}  // namespace trainyard::policies
