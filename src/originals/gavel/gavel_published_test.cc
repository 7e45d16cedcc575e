// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/catalog_lookup.h"
#include "originals/gavel/gavel_policies.h"
#include "originals/originals.h"

namespace trainyard::originals {
namespace {

Result<Components> MakeNamed(const std::string& text) {
  return base::MakeFrom(Originals(), ComponentKind::kPolicy, ParseNamedOptions(text).value());
}

TEST(GavelPublishedTest, JobsShareGpusWhereTheAllocationHasPairs) {
  const auto shares = [](const std::string& allocation) {
    const auto made = MakeNamed("gavel-published:allocation=" + allocation);
    return made.value().policy->traits().may.share;
  };
  EXPECT_TRUE(shares("gandiva"));
  EXPECT_TRUE(shares("fifo_packed"));
  EXPECT_FALSE(shares("fifo_perf"));
}

TEST(GavelPublishedTest, ListsTheAllocationsThatThereAre) {
  const auto made = MakeNamed("gavel-published:allocation=sjf");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(
      made.error().message.substr(0, 88),
      "allocation 'sjf' of policy 'gavel-published'; expected one of allox, fifo, fifo_packed, ");
}

// Two equal jobs on one GPU: each round the one that has had less of it.
TEST(GavelMechanismTest, TheOneThatHasHadLessGoesFirst) {
  const std::vector<int> gpus{1};
  const GavelPairs no_pairs = [](int, int) { return nullptr; };
  const GavelSolver halves = [](const policies::AllocationProblem& problem, std::span<const int>,
                                GavelState&) {
    policies::Allocation allocation = policies::NoShares(problem);
    for (policies::AllocationUnit& unit : allocation.units) {
      unit.shares = {0.5};
    }
    return allocation;
  };
  GavelState state;
  const GavelRules rules{.shuffles_types = false};
  GavelMechanism mechanism(rules, gpus, no_pairs, halves, state);
  const GavelJob job{.steps_left = 1000, .rates = {1}};
  mechanism.Turn(0, {job, job});
  std::vector<int> served;
  for (int round = 0; round < 4; ++round) {
    served.push_back(state.tasks.at(0).unit.first);
    mechanism.Turn(*mechanism.RoundEnd(), {});
  }
  EXPECT_EQ(served, (std::vector<int>{0, 1, 0, 1}));
  EXPECT_EQ(state.now, 4 * 360);
  EXPECT_EQ(state.jobs.at(0).steps_left, 1000 - 2 * 360);
}

// Each GPU has a whole number of steps.
TEST(GavelMechanismTest, AJobWithFewerStepsThanGpusIsLost) {
  const std::vector<int> gpus{4};
  const GavelPairs no_pairs = [](int, int) { return nullptr; };
  const GavelSolver all = [](const policies::AllocationProblem& problem, std::span<const int>,
                             GavelState&) {
    policies::Allocation allocation = policies::NoShares(problem);
    allocation.units[0].shares = {1};
    return allocation;
  };
  GavelState state;
  const GavelRules rules{.shuffles_types = false};
  GavelMechanism mechanism(rules, gpus, no_pairs, all, state);
  mechanism.Turn(0, {GavelJob{.gpus = 4, .steps_left = 3, .rates = {1}}});
  int failures = 0;
  while (!state.jobs.empty()) {
    EXPECT_TRUE(mechanism.EndingWith(state.tasks.at(0)).empty());
    ++failures;
    mechanism.Turn(*mechanism.RoundEnd(), {});
  }
  EXPECT_EQ(failures, 5);
}

}  // namespace
}  // namespace trainyard::originals
