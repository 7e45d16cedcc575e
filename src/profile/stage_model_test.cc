// SPDX-License-Identifier: Apache-2.0
#include "profile/execution_model.h"

#include <gtest/gtest.h>

#include <limits>

namespace trainyard::profile {
namespace {

JobSpec JobWith(StageTimes times, int priority = 0) {
  JobSpec job{.gpus = 2, .iterations = 1000};
  const auto traits = std::make_shared<JobTraits>();
  traits->stages = std::move(times);
  job.traits = traits;
  job.priority = priority;
  return job;
}

JobSpec Bert(int priority = 0) {
  return JobWith({.iteration = 0.178, .stages = {0.0005, 0.160, 0}}, priority);
}
JobSpec Dqn(int priority = 0) {
  return JobWith({.iteration = 0.490, .stages = {0.446, 0.008, 0}}, priority);
}

const GroupTimes::Rules kRules{.slowdown = {1.015, 1.5, 2, 3}};
const Grant kTwoGpus{.gpus = 2};

TEST(StageModelTest, AloneAnIterationTakesItsIterationTime) {
  const std::unique_ptr<ExecutionModel> model = MakeStageModel(kRules);
  EXPECT_EQ(model->TotalWork(Bert()), 1000);
  EXPECT_DOUBLE_EQ(model->Rate(Bert(), 2), 1 / (0.178 * 1.015));
  EXPECT_EQ(model->Rate(Bert(), 4), 0);
  EXPECT_DOUBLE_EQ(model->RateUnder(Bert(), kTwoGpus, {}), model->Rate(Bert(), 2));
  EXPECT_EQ(model->RateUnder(Bert(), {.gpus = 1}, {}), 0);
}

TEST(StageModelTest, WorkFollowsFromTheDurationWhereNoIterationsAreStated) {
  JobSpec job = Dqn();
  job.iterations.reset();
  job.duration = FromSeconds(49);
  EXPECT_DOUBLE_EQ(MakeStageModel(kRules)->TotalWork(job), 100);
}

TEST(StageModelTest, AGroupProceedsInLockStep) {
  const std::unique_ptr<ExecutionModel> model = MakeStageModel(kRules);
  const JobSpec bert = Bert();
  const JobSpec dqn = Dqn();
  const std::vector<const JobSpec*> group{&dqn, &bert};
  EXPECT_DOUBLE_EQ(model->ThroughputUnder(bert, kTwoGpus, {.group = group}).seconds_per_unit,
                   0.454 * 1.5);
  EXPECT_EQ(model->RateUnder(bert, kTwoGpus, {.group = group}),
            model->RateUnder(dqn, kTwoGpus, {.group = group}));
}

TEST(StageModelTest, TheOpportunisticJobYields) {
  const std::unique_ptr<ExecutionModel> model = MakeStageModel(kRules);
  const JobSpec guaranteed = Bert();
  const JobSpec opportunistic = Dqn(1);
  const std::vector<const JobSpec*> by_guaranteed{&guaranteed};
  const std::vector<const JobSpec*> by_opportunistic{&opportunistic};
  EXPECT_DOUBLE_EQ(model->ThroughputUnder(guaranteed, kTwoGpus, {.collocated = by_opportunistic})
                       .seconds_per_unit,
                   0.178 * 1.015);
  // Loading 446 ms takes two GPU stages of 160 ms and part of a third; 8 ms on the GPU then take
  // the loading of 16 more iterations, 0.5 ms each.
  EXPECT_DOUBLE_EQ(model->ThroughputUnder(opportunistic, kTwoGpus, {.collocated = by_guaranteed})
                       .seconds_per_unit,
                   19 * 0.178 * 1.015);
  EXPECT_DOUBLE_EQ(model->ThroughputUnder(opportunistic, kTwoGpus, {.collocated = by_opportunistic})
                       .seconds_per_unit,
                   2 * 0.490 * 1.015);
}

// Loading 10 needs 10 / (3 + 1) = 2 iterations and 2 of a third, whose rest of 2 hides 1 of the GPU
// stage; the other 3 need 3 / (4 + 1) of a fourth, less than its loading, so the network stage of 2
// finds room in the rest of it.
TEST(SecondsYieldingTest, StagesFillTheGapsOfTheOther) {
  const StageTimes job{.iteration = 1, .stages = {10, 4, 2}};
  const StageTimes other{.iteration = 7, .stages = {4, 3, 1}};
  EXPECT_EQ(SecondsYielding(job, other, 7), 4 * 7);
}

TEST(SecondsYieldingTest, WhatDoesNotFitTakesAnotherIteration) {
  const StageTimes job{.iteration = 1, .stages = {8, 5, 20}};
  const StageTimes other{.iteration = 7, .stages = {4, 3, 1}};
  // 2 for loading, 1 for the GPU stage, 2 and 6 > 4 for the network.
  EXPECT_EQ(SecondsYielding(job, other, 7), 6 * 7);
}

TEST(SecondsYieldingTest, WhereThereIsNoGapItTakesForEver) {
  const double kForEver = std::numeric_limits<double>::infinity();
  const StageTimes computes{.iteration = 1, .stages = {0, 1, 0}};
  const StageTimes loads{.iteration = 1, .stages = {1, 0, 0}};
  const StageTimes talks{.iteration = 1, .stages = {0, 0, 1}};
  for (const StageTimes& one : {computes, loads, talks}) {
    EXPECT_EQ(SecondsYielding(one, one, 1), kForEver);
  }
  EXPECT_EQ(SecondsYielding(computes, loads, 1), 1);
  const StageTimes nearly{.iteration = 1, .stages = {0.001, 0.999, 0}};
  EXPECT_NEAR(SecondsYielding(computes, nearly, 1), 1000, 1);
}

// A network stage that fits into the loading of the other one is not counted as published: 0.29 of
// 1 s, while the other one uses 0.7 of the network.
TEST(SecondsYieldingTest, NoResourceIsUsedTwice) {
  const StageTimes job{.iteration = 0.29, .stages = {0, 0, 0.29}};
  const StageTimes other{.iteration = 1, .stages = {0.3, 0, 0.7}};
  EXPECT_EQ(SecondsYielding(job, other, 1), 0);
  EXPECT_DOUBLE_EQ(LeastSecondsBeside(job, other, 1), 0.29 / 0.3);
  const JobSpec own = JobWith(job, 1);
  const JobSpec first = JobWith(other, 0);
  const std::vector<const JobSpec*> beside{&first};
  EXPECT_DOUBLE_EQ(
      MakeStageModel({})->ThroughputUnder(own, kTwoGpus, {.collocated = beside}).seconds_per_unit,
      0.29 / (1 - 0.7));
}

TEST(StageModelTest, BesideAJobThatNeverLeavesTheGpuNothingAdvances) {
  const JobSpec own = JobWith({.iteration = 1, .stages = {0, 1, 0}}, 1);
  const JobSpec first = JobWith({.iteration = 1, .stages = {0, 1, 0}}, 0);
  const std::vector<const JobSpec*> beside{&first};
  EXPECT_EQ(MakeStageModel({})->RateUnder(own, kTwoGpus, {.collocated = beside}), 0);
}

TEST(MixedModelTest, StagesComeBeforeProfilesAndDurations) {
  const std::unique_ptr<ExecutionModel> model = MakeMixedModel(nullptr, kRules);
  EXPECT_EQ(model->TotalWork(Bert()), 1000);
  EXPECT_DOUBLE_EQ(model->Rate(Bert(), 2), 1 / (0.178 * 1.015));
  const JobSpec declared{.gpus = 2, .duration = FromSeconds(60)};
  EXPECT_EQ(model->TotalWork(declared), 60);
  EXPECT_EQ(model->RateUnder(declared, kTwoGpus, {}), 1);
}

}  // namespace
}  // namespace trainyard::profile
