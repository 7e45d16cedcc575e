// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "policies/gavel/allox_matching.h"
#include "policies/gavel/fair_allocations.h"
#include "policies/gavel/problem_of.h"
#include "policies/gavel/simple_allocations.h"
#include "policies/gavel/throughput_allocations.h"

namespace trainyard::policies {
namespace {

AllocationJob JobWith(std::vector<double> rates, int gpus = 1, double weight = 1) {
  return {.kind = 0,
          .gpus = gpus,
          .weight = weight,
          .rates = std::move(rates),
          .work_left = 100,
          .time_left = std::numeric_limits<double>::infinity()};
}

double SumOf(const std::vector<double>& shares) {
  return std::accumulate(shares.begin(), shares.end(), 0.0);
}

// The second job does as much on either type.
TEST(AllocationsTest, JobsGetTheTypesOnWhichTheyGainMost) {
  const AllocationProblem problem{.gpus = {1, 1}, .jobs = {JobWith({1, 10}), JobWith({3, 3})}};
  const Allocation allocation = WaterFilling(problem);
  EXPECT_NEAR(allocation.objective, 1, 1e-9);
  EXPECT_NEAR(allocation.units[0].shares[1], 1, 1e-9);
  EXPECT_NEAR(allocation.units[1].shares[0], 1, 1e-9);
  EXPECT_NEAR(RatesBy(problem, Isolated(problem))[0], 5.5, 1e-9);
}

TEST(AllocationsTest, JobsThatAreAlikeHaveEqualShares) {
  AllocationProblem problem{.gpus = {2, 1}};
  for (int i = 0; i < 9; ++i) {
    problem.jobs.push_back(i % 3 == 0 ? JobWith({1, 4}) : JobWith({1, 2}, 1 + i % 2, 2));
  }
  const Allocation allocation = WaterFilling(problem);
  EXPECT_EQ(allocation.units[0].shares, allocation.units[3].shares);
  EXPECT_EQ(allocation.units[1].shares, allocation.units[5].shares);
}

TEST(AllocationsTest, WeightsMultiplyShares) {
  const AllocationProblem problem{.gpus = {1}, .jobs = {JobWith({1}), JobWith({1}, 1, 3)}};
  const Allocation allocation = MaxMinFairness(problem);
  EXPECT_NEAR(allocation.units[0].shares[0], 0.25, 1e-9);
  EXPECT_NEAR(allocation.units[1].shares[0], 0.75, 1e-9);
}

// Those of the first type have more than the least level already, and could go without the rest.
TEST(AllocationsTest, WaterFillingGoesOnAfterTheLeastLevel) {
  const AllocationProblem problem{
      .gpus = {1, 3}, .jobs = {JobWith({1, 0}), JobWith({1, 0}), JobWith({0, 1}), JobWith({0, 1})}};
  const Allocation allocation = WaterFilling(problem);
  EXPECT_NEAR(allocation.objective, 4.0 / 3, 1e-9);
  EXPECT_NEAR(allocation.units[1].shares[0], 0.5, 1e-9);
  EXPECT_NEAR(allocation.units[2].shares[1], 1, 1e-9);
}

TEST(AllocationsTest, NobodyIsLaterThanTheWorstFinishTimeAllows) {
  AllocationProblem problem{.gpus = {1, 1}, .jobs = {JobWith({1, 3}), JobWith({2, 1})}};
  problem.jobs[1].work_left = 500;
  const std::vector<double> fair = IsolatedRates(problem);
  const Allocation allocation = FairFinishTimes(problem, fair);
  EXPECT_LT(allocation.objective, 1);
  const std::vector<double> rates = RatesBy(problem, allocation);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_LE(fair[i] / rates[i], allocation.objective + 1e-9);
  }
}

TEST(AllocationsTest, AllWorkIsDoneByTheLeastMakespan) {
  const AllocationProblem problem{.gpus = {1, 1},
                                  .jobs = {JobWith({1, 2}), JobWith({1, 2}), JobWith({1, 2})}};
  const Allocation allocation = LeastMakespan(problem);
  EXPECT_NEAR(allocation.objective, 100, 1e-6);  // 300 units at 3 per second
  for (const double rate : RatesBy(problem, allocation)) {
    EXPECT_NEAR(rate, 1, 1e-9);
  }
}

TEST(AllocationsTest, DeadlinesCountIfAllCanBeMet) {
  AllocationProblem problem{.gpus = {1}, .jobs = {JobWith({3}), JobWith({1})}};
  problem.jobs[1].time_left = 200;  // needs half a unit per second
  const ThroughputAllocation met = MostThroughput(problem, true);
  EXPECT_TRUE(met.deadlines_hold);
  EXPECT_NEAR(met.allocation.objective, 2, 1e-9);
  problem.jobs[1].time_left = 50;
  const ThroughputAllocation missed = MostThroughput(problem, true);
  EXPECT_FALSE(missed.deadlines_hold);
  EXPECT_NEAR(missed.allocation.objective, 3, 1e-9);
}

TEST(AllocationsTest, PricesDivideRates) {
  AllocationProblem problem{.gpus = {1, 1}, .prices = {1, 10}, .jobs = {JobWith({2, 5})}};
  EXPECT_NEAR(MostThroughput(problem, false).allocation.units[0].shares[0], 1, 1e-9);
  problem.prices = {1, 2};
  EXPECT_NEAR(MostThroughput(problem, false).allocation.units[0].shares[1], 1, 1e-9);
}

TEST(AllocationsTest, WhoKnowsNoTypesDividesTimeAsGpusAre) {
  const AllocationProblem problem =
      WithoutTypes({.gpus = {3, 1}, .jobs = std::vector<AllocationJob>(8, JobWith({1, 4}))});
  const Allocation allocation = SpreadOverTypes(problem, MaxMinFairness(problem));
  EXPECT_NEAR(allocation.units[5].shares[0], 3.0 / 8, 1e-9);
  EXPECT_NEAR(allocation.units[5].shares[1], 1.0 / 8, 1e-9);
  const AllocationProblem one_type{.gpus = {1, 1}, .jobs = {JobWith({1, 0})}};
  const Allocation kept = SpreadOverTypes(one_type, MaxMinFairness(one_type));
  EXPECT_NEAR(kept.units[0].shares[0], 1, 1e-9);
}

TEST(AllocationsTest, NobodyOvertakesInFifo) {
  const AllocationProblem problem{
      .gpus = {1, 2}, .jobs = {JobWith({1, 2}, 2), JobWith({1, 2}, 2), JobWith({1, 2})}};
  const Allocation allocation = FifoByThroughput(problem);
  EXPECT_EQ(allocation.units[0].shares, (std::vector<double>{0, 1}));
  EXPECT_EQ(SumOf(allocation.units[1].shares) + SumOf(allocation.units[2].shares), 0);
}

// 0.9 of each beside the other.
AllocationProblem Pairable(int jobs) {
  AllocationProblem problem{.gpus = {1}};
  problem.jobs.assign(static_cast<std::size_t>(jobs), JobWith({1}));
  problem.pairs = {{.first = 0, .second = 0, .first_rates = {0.9}, .second_rates = {0.9}}};
  return problem;
}

TEST(AllocationsTest, SharedGpusRaiseTheLeastLevel) {
  const AllocationProblem problem = Pairable(5);
  const Allocation allocation = MaxMinFairness(problem);
  EXPECT_NEAR(allocation.objective, 1.8 / 5, 1e-9);
  std::vector<double> time(5, 0.0);
  for (const AllocationUnit& unit : allocation.units) {
    time[unit.first] += SumOf(unit.shares);
    time[unit.second] += unit.alone() ? 0 : SumOf(unit.shares);
  }
  for (const double one : time) {
    EXPECT_NEAR(one, 0.4, 1e-9);
  }
  for (const double rate : RatesBy(problem, allocation)) {
    EXPECT_NEAR(rate, 0.36, 1e-9);
  }
}

TEST(AllocationsTest, FifoPacksWhoIsWorthIt) {
  const Allocation allocation = FifoByThroughput(Pairable(3));
  ASSERT_EQ(allocation.units.size(), 4);
  EXPECT_EQ(allocation.units[3].first, 0);
  EXPECT_EQ(allocation.units[3].second, 1);
  EXPECT_EQ(SumOf(allocation.units[0].shares), 0);
}

TEST(AllocationsTest, AlloxRunsShortJobsFirstWhereTheyAreFastest) {
  AllocationProblem problem{.gpus = {1, 1},
                            .jobs = {JobWith({1, 1}), JobWith({1, 10}), JobWith({1, 0.5})}};
  problem.jobs[1].work_left = 200;
  problem.jobs[2].work_left = 10;
  const Allocation allocation = Allox(problem, {});
  // Ends at 10 and 110 on the first type, at 20 on the second.
  EXPECT_NEAR(allocation.objective, 140, 1e-6);
  EXPECT_EQ(allocation.units[1].shares[1], 1);
  EXPECT_EQ(allocation.units[2].shares[0], 1);
  EXPECT_EQ(SumOf(allocation.units[0].shares), 0);
}

TEST(AllocationsTest, PlacedJobsKeepTheirGpus) {
  const AllocationProblem problem{.gpus = {1, 1}, .jobs = {JobWith({1, 1}), JobWith({1, 10})}};
  const std::vector<PlacedJob> placed{{.job = 0, .type = 1}};
  const Allocation allocation = Allox(problem, placed);
  EXPECT_EQ(allocation.units[0].shares[1], 1);
  EXPECT_EQ(allocation.units[1].shares[0], 1);
}

TEST(AllocationsTest, PairsHaveOneShareTogether) {
  const std::vector<std::size_t> partners{1, 0, 2};
  const Allocation allocation = EqualUnits(Pairable(3), partners);
  ASSERT_EQ(allocation.units.size(), 4);
  EXPECT_EQ(allocation.units[2].shares[0], 0.5);
  EXPECT_EQ(allocation.units[3].shares[0], 0.5);
}

TEST(AllocationsTest, PricesAreReadByType) {
  const auto prices = ParsePrices("v100:0.74/k80:0.135");
  ASSERT_TRUE(prices.ok());
  EXPECT_EQ(prices.value().at("k80"), 0.135);
  EXPECT_EQ(ParsePrices("v100").error().message,
            "prices 'v100'; expected TYPE:PRICE for each type of GPU, with / between them and "
            "prices > 0");
}

}  // namespace
}  // namespace trainyard::policies
