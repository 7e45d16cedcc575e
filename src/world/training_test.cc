// SPDX-License-Identifier: Apache-2.0
#include "world/training.h"

#include <gtest/gtest.h>

#include "support/measured_trainings.h"
#include "support/scratch_folder.h"
#include "world/simulated_trainings.h"

namespace trainyard::world {
namespace {

class TrainingTest : public testing::Test {
 protected:
  TrainingTest() {
    WriteTraining(folder_, "net");
    applications_ = profile::Applications::Read(folder_.path()).value();
  }
  [[nodiscard]] const profile::Application& net() const { return applications_.all()[0]; }

  ScratchFolder folder_;
  profile::Applications applications_;
  const Cluster cluster_{.nodes = {{.name = "0", .gpus = 4}}, .changes = {}};
  profile::TrainingRules rules_;
};

// 32 samples on one GPU: 43 ms an iteration, 100 of them in the first epoch.
TEST_F(TrainingTest, AnEpochTakesItsIterationsAfterTheDelay) {
  Training training(net(), rules_);
  EXPECT_EQ(training.next(), std::nullopt);
  training.Start(AtSeconds(10), FromSeconds(5), {1});
  EXPECT_EQ(training.batch(), (profile::Batch{.part = 32, .accumulated = 0}));
  EXPECT_EQ(training.report(), std::nullopt) << "it has not run yet";
  EXPECT_NEAR(Seconds(*training.next()), 15 + 4.3, 1e-5);
  training.EndStretch();
  EXPECT_EQ(training.epoch(), 1);
  EXPECT_EQ(training.progress(), 100);
  ASSERT_TRUE(training.report());
  EXPECT_EQ(training.report()->tried_gpus, 1);
  EXPECT_EQ(training.report()->model.noise.variance, 1);
  while (!training.done()) {
    training.EndStretch();
  }
  EXPECT_EQ(training.progress(), 300);
  EXPECT_EQ(training.next(), std::nullopt);
}

TEST_F(TrainingTest, ItReportsAtWholeMinutesAndAdaptsToTheNoise) {
  rules_.whole_seconds = true;
  Training training(net(), rules_);
  training.Start(AtSeconds(59), Duration{0}, {4});
  EXPECT_EQ(training.next(), AtSeconds(60));
  training.EndStretch();
  EXPECT_EQ(training.epoch(), 0);
  // Once its goodput is known, the noisy second epoch is worth the largest batch.
  while (training.epoch() == 0) {
    training.EndStretch();
  }
  training.EndStretch();
  EXPECT_GT(training.batch().On(4), 64);
  EXPECT_LE(training.batch().On(4), 128);
}

TEST_F(TrainingTest, WhatIsDoneStaysDoneOnOtherGpus) {
  Training training(net(), rules_);
  training.Start(AtSeconds(0), FromSeconds(1), {1});
  training.Stop(AtSeconds(0.5));
  EXPECT_EQ(training.progress(), 0) << "it was still starting";
  training.Start(AtSeconds(2), Duration{0}, {1});
  training.Stop(AtSeconds(2 + 0.43));
  EXPECT_NEAR(training.progress(), 10, 1e-9);
  EXPECT_EQ(training.next(), std::nullopt);
  training.Start(AtSeconds(5), Duration{0}, {2, 2});
  EXPECT_GE(training.next(), AtSeconds(5));
  EXPECT_NEAR(training.progress(), 10, 1e-9);
}

TEST_F(TrainingTest, ProgressMayBeSlowerThanMeasured) {
  rules_.applications["net"].slower = 2;
  Training training(net(), rules_);
  training.Start(AtSeconds(0), Duration{0}, {1});
  EXPECT_NEAR(Seconds(*training.next()), 2 * 4.3, 1e-5);
}

TEST_F(TrainingTest, OnEachTypeOfGpuItIsKnownByItself) {
  ScratchFolder folder;
  WriteTypedTraining(folder);
  const profile::Applications typed = profile::Applications::Read(folder.path()).value();
  std::vector<std::string> fitted;
  rules_.fit = [&fitted](std::string_view type, std::span<const profile::MeasuredStep> measured) {
    fitted.push_back(std::string(type) + std::to_string(measured.size()));
    return profile::FitStepTimes(measured).times;
  };
  Training training(typed.all()[0], rules_);
  training.Start(AtSeconds(0), Duration{0}, {2}, "slow");
  training.Stop(AtSeconds(1));
  ASSERT_TRUE(training.report());
  EXPECT_EQ(training.report()->gpu_type, profile::NumberOfType("slow"));
  EXPECT_EQ(training.report()->tried_gpus, 2);
  training.Start(AtSeconds(2), FromSeconds(1), {1}, "fast");
  EXPECT_EQ(training.report()->gpu_type, profile::NumberOfType("slow")) << "not measured yet";
  training.Stop(AtSeconds(3.5));
  EXPECT_EQ(training.report()->gpu_type, profile::NumberOfType("fast"));
  EXPECT_EQ(training.report()->tried_gpus, 1);
  EXPECT_EQ(training.report()->model.limits.most_part, 128);
  EXPECT_EQ(fitted, (std::vector<std::string>{"slow1", "fast1"}));
}

TEST_F(TrainingTest, AFixedBatchIsKept) {
  rules_.applications["net"].fixed_batch = 128;
  Training training(net(), rules_);
  training.Start(AtSeconds(0), Duration{0}, {1});
  EXPECT_EQ(training.batch(), (profile::Batch{.part = 64, .accumulated = 1}));
  training.EndStretch();
  EXPECT_EQ(training.batch(), (profile::Batch{.part = 64, .accumulated = 1}));
  EXPECT_EQ(training.report()->most_gpus, 1);
}

TEST_F(TrainingTest, FactsAreToldAsTheyBecomeTrue) {
  const auto jobs =
      std::make_shared<const std::vector<JobSpec>>(2, JobSpec{.model = "net", .profile_row = 0});
  SimulatedTrainings trainings(applications_, rules_, cluster_, jobs);
  EXPECT_EQ(trainings.next(), std::nullopt);
  const model::Action launch{.kind = model::ActionKind::kLaunch,
                             .job = JobAt(1),
                             .grant = {.gpus = 1, .slices = {{.node = NodeAt(0), .gpus = 1}}},
                             .debt = FromSeconds(5)};
  trainings.Perform(AtSeconds(10), std::vector{launch});
  ASSERT_NEAR(Seconds(trainings.next().value()), 19.3, 1e-5);
  EXPECT_TRUE(trainings.Advance(AtSeconds(19)).empty());
  const std::vector<model::Event> facts = trainings.Advance(*trainings.next());
  ASSERT_EQ(facts.size(), 2U);
  EXPECT_EQ(facts[0].As<model::fact::Progress>().work_done, 100);
  EXPECT_EQ(facts[1].As<model::fact::Reported>().metrics.size(), 15U);
  EXPECT_EQ(facts[1].job(), JobAt(1));
  std::vector<model::Event> last;
  while (trainings.next()) {
    last = trainings.Advance(*trainings.next());
  }
  ASSERT_EQ(last.size(), 1U);
  EXPECT_EQ(last[0].kind(), model::EventKind::kEnded);
}

TEST_F(TrainingTest, AJobThatIsPreemptedTellsNothingUntilItRunsAgain) {
  const auto jobs =
      std::make_shared<const std::vector<JobSpec>>(1, JobSpec{.model = "net", .profile_row = 0});
  SimulatedTrainings trainings(applications_, rules_, cluster_, jobs);
  const Grant grant{.gpus = 1, .slices = {{.node = NodeAt(0), .gpus = 1}}};
  trainings.Perform(AtSeconds(0), std::vector<model::Action>{
                                      {.kind = model::ActionKind::kLaunch, .grant = grant}});
  trainings.Perform(AtSeconds(1),
                    std::vector<model::Action>{{.kind = model::ActionKind::kPreempt}});
  EXPECT_EQ(trainings.next(), std::nullopt);
  trainings.Perform(AtSeconds(2), std::vector<model::Action>{
                                      {.kind = model::ActionKind::kLaunch, .grant = grant}});
  EXPECT_NEAR(Seconds(trainings.next().value()), 2 + 3.3, 1e-5);
}

}  // namespace
}  // namespace trainyard::world
