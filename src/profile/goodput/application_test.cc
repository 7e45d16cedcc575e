// SPDX-License-Identifier: Apache-2.0
#include "profile/goodput/application.h"

#include <gtest/gtest.h>

#include "profile/goodput/batch_choice.h"
#include "profile/goodput/training_model.h"
#include "support/measured_trainings.h"
#include "support/scratch_folder.h"

namespace trainyard::profile {
namespace {

class ApplicationTest : public testing::Test {
 protected:
  ApplicationTest() { WriteTraining(folder_, "net"); }
  Applications Read() {
    Result<Applications> read = Applications::Read(folder_.path());
    EXPECT_TRUE(read.ok()) << read.error().message;
    return std::move(read).value();
  }
  std::string ErrorAfter(const std::string& file, const std::string& text) {
    (void)folder_.Write("apps/net/" + file, text);
    const Result<Applications> read = Applications::Read(folder_.path());
    return read.ok() ? "no error" : read.error().message.substr(folder_.path().size());
  }
  ScratchFolder folder_;
};

TEST_F(ApplicationTest, LimitsAndEpochsAreThoseOfTheFiles) {
  ASSERT_TRUE(Applications::AreAt(folder_.path()));
  const Applications read = Read();
  ASSERT_EQ(read.Find("net"), 0);
  EXPECT_EQ(read.Find("other"), -1);
  const Application& net = read.all()[0];
  EXPECT_EQ(net.limits(),
            (BatchLimits{.initial = 32, .most = 128, .least_part = 4, .most_part = 64}));
  EXPECT_EQ(net.epochs(), 2);
  EXPECT_EQ(net.ProgressAfter(0), 0);
  EXPECT_EQ(net.ProgressAfter(1), 100);  // the least of all batches
  EXPECT_EQ(net.ProgressAfter(2), 300);
}

TEST_F(ApplicationTest, TimesAreInterpolatedBetweenSamples) {
  const Applications read = Read();
  const Application& net = read.all()[0];
  EXPECT_NEAR(net.TimesOn({1}, 10).compute(), 0.02, 1e-9);
  EXPECT_NEAR(net.TimesOn({1}, 10).step, 0.021, 1e-9);
  EXPECT_NEAR(net.TimesOn({2, 1}, 64).sync, 0.05, 1e-9) << "as 12";
  EXPECT_NEAR(net.TimesOn({4}, 80).compute(), 0.09, 1e-9) << "lines go on";
}

TEST_F(ApplicationTest, WhatWasNotPlacedIsInterpolatedBetweenNodesAndGpus) {
  const Applications read = Read();
  const Application& net = read.all()[0];
  // Between two nodes with 50 ms and four with 60 ms.
  EXPECT_NEAR(net.TimesOn({4, 4, 4}, 16).sync, 0.055, 1e-9);
  EXPECT_NEAR(net.TimesOn({8}, 16).sync, 0.05, 1e-9) << "as two nodes of four";
  EXPECT_NEAR(net.TimesOn({4, 4, 4, 4, 4}, 16).sync, 0.06, 1e-9) << "as the largest";
}

TEST_F(ApplicationTest, NoiseIsInterpolatedBetweenBatches) {
  const Applications read = Read();
  const Application& net = read.all()[0];
  EXPECT_NEAR(net.NoiseAt(48, 0).variance, 1.5, 1e-9);
  EXPECT_NEAR(net.NoiseAt(64, 1).variance, 100, 1e-9);
  EXPECT_NEAR(net.NoiseAt(1000, 0).variance, 3, 1e-9) << "as the nearest";
  EXPECT_NEAR(net.NoiseAt(1, 0).variance, 1, 1e-9);
}

TEST_F(ApplicationTest, FilesThatCannotBeAreRefused) {
  EXPECT_EQ(ErrorAfter("placements.csv", "placement,local_bsz,step_time,sync_time\n15,4,1,0\n"),
            "/apps/net/placements.csv:2: column 'placement' is '15'; expected 1 to 4 digits from 1 "
            "to 4: the GPUs on each node");
  EXPECT_EQ(ErrorAfter("placements.csv", "placement,local_bsz,step_time,sync_time\n1,4,1,2\n"),
            "/apps/net/placements.csv:2: column 'sync_time' is '2'; expected less than step_time");
  WriteTraining(folder_, "net");
  EXPECT_EQ(ErrorAfter("validation-64.csv", "progress,grad_sqr,grad_var\n5,1,1\n"),
            "/apps/net/validation-64.csv: 1 epochs; expected 2 as for the other batches");
  EXPECT_EQ(ErrorAfter("validation-64.csv", "progress,grad_sqr,grad_var\n5,1,1\n5,1,1\n"),
            "/apps/net/validation-64.csv:3: column 'progress' is '5'; expected more than after the "
            "epoch before");
}

TEST_F(ApplicationTest, RulesOfAPublishedProgramLimitParts) {
  const Applications read = Read();
  const TrainingRules rules{.applications = {{"net", {.most_part = 16}}}};
  EXPECT_EQ(LimitsUnder(rules, read.all()[0]).most_part, 16);
  EXPECT_EQ(LimitsUnder({}, read.all()[0]).most_part, 64);
}

TEST_F(ApplicationTest, TheModelOfAWholeTrainingKnowsItsWorkAndItsPace) {
  const Applications read = Read();
  const TrainingRules none;
  const std::unique_ptr<ExecutionModel> model = MakeTrainingModel(read, none);
  const JobSpec job{.model = "net", .gpus = 1, .profile_row = 0};
  EXPECT_EQ(model->TotalWork(job), 300);
  EXPECT_GT(model->Rate(job, 1), 0);
  EXPECT_GT(model->Rate(job, 4), model->Rate(job, 1));
  EXPECT_EQ(model->Rate(job, 65), 0);
  const TrainingRules fixed{.applications = {{"net", {.fixed_batch = 64}}}};
  EXPECT_EQ(MakeTrainingModel(read, fixed)->Levels(job).size(), 1U);
}

class TypedApplicationTest : public testing::Test {
 protected:
  TypedApplicationTest() { WriteTypedTraining(folder_); }
  Applications Read() {
    Result<Applications> read = Applications::Read(folder_.path());
    EXPECT_TRUE(read.ok()) << read.error().message;
    return std::move(read).value();
  }
  std::string ErrorAfter(const std::string& file, const std::string& text) {
    (void)folder_.Write(file, text);
    const Result<Applications> read = Applications::Read(folder_.path());
    return read.ok() ? "no error" : read.error().message.substr(folder_.path().size());
  }
  ScratchFolder folder_;
};

TEST_F(TypedApplicationTest, EachTypeHasItsOwnTimesAndLimits) {
  ASSERT_TRUE(Applications::AreAt(folder_.path()));
  const Applications read = Read();
  ASSERT_EQ(read.all().size(), 1U) << "pipelined trainings are left out";
  const Application& net = read.all()[0];
  EXPECT_TRUE(net.has_types());
  EXPECT_TRUE(net.RunsOn("slow"));
  EXPECT_FALSE(net.RunsOn("other"));
  EXPECT_EQ(net.limits("slow").most_part, 64);
  EXPECT_EQ(net.limits("fast").most_part, 128);
  EXPECT_EQ(net.limits("fast").most, 128);
  EXPECT_EQ(net.epochs(), 2);
  EXPECT_NEAR(net.TimesOn({2}, 16, "slow").compute(), 0.026, 1e-9);
  EXPECT_NEAR(net.TimesOn({2}, 16, "fast").compute(), 0.0065, 1e-9);
  EXPECT_NEAR(net.On("slow").OneGpuThroughput(), 64 / 0.075, 1e-9);
}

TEST_F(TypedApplicationTest, TheMostSamplesOfAPartDependOnThePlacement) {
  const Applications read = Read();
  const PassTable& slow = read.all()[0].On("slow");
  EXPECT_EQ(slow.MostPartOn({2}), 64);
  EXPECT_EQ(slow.MostPartOn({2, 2, 2}), 32) << "as on four nodes";
  EXPECT_EQ(slow.MostPartOn({2, 2, 2, 2, 2}), 0) << "no such was measured";
  EXPECT_EQ(slow.MostPartWith(4), 64);
  EXPECT_EQ(slow.MostPartWith(3), 0);
  const BatchLimits limits = read.all()[0].limits("slow");
  EXPECT_EQ(ChooseBatch(read.all()[0], "slow", {2, 2, 2}, {.limits = limits, .fixed_batch = 256}),
            (Batch{.part = 10, .accumulated = 1}))
      << "the largest batch is 128";
}

TEST_F(TypedApplicationTest, RulesMayBeOfOneType) {
  const Applications read = Read();
  const TrainingRules rules{.applications = {{"net.slow", {.most_part = 16}}}};
  EXPECT_EQ(LimitsUnder(rules, read.all()[0], "slow").most_part, 16);
  EXPECT_EQ(LimitsUnder(rules, read.all()[0], "fast").most_part, 128);
}

TEST_F(TypedApplicationTest, OnOtherTypesTheModelIsAsMuchFasterAsOneGpu) {
  const Applications read = Read();
  const TrainingRules none;
  const std::unique_ptr<ExecutionModel> model = MakeTrainingModel(read, none);
  const JobSpec job{.model = "net", .gpus = 1, .profile_row = 0};
  const double quotient = (128 / (0.138 / 4 + 0.001)) / (64 / 0.075);
  EXPECT_NEAR(model->RateOn(job, 4, {.name = "fast"}), quotient * model->Rate(job, 4), 1e-9);
  EXPECT_NEAR(model->RateOn(job, 4, {.name = "slow"}), model->Rate(job, 4), 1e-12);
  EXPECT_EQ(model->RateOn(job, 4, {.name = "other"}), 0);
  const TrainingRules slower{.applications = {{"net", {.slower = 2}}}};
  EXPECT_NEAR(MakeTrainingModel(read, slower)->Rate(job, 4), model->Rate(job, 4) / 2, 1e-12);
}

TEST_F(TypedApplicationTest, TablesThatCannotBeAreRefused) {
  const std::string header = "application,gpu_type,placement,local_bsz,step_time,sync_time\n";
  EXPECT_EQ(
      ErrorAfter("placements.csv", header + "net,slow,2x,4,1,0\n"),
      "/placements.csv:2: column 'placement' is '2x'; expected digits from 1 to 9: the GPUs on "
      "each node");
  EXPECT_EQ(ErrorAfter("placements.csv", header + "net,,2,4,1,0\n"),
            "/placements.csv:2: column 'gpu_type' is ''; expected a type of GPU");
  EXPECT_EQ(ErrorAfter("placements.csv", header + "net,fast,2,4,1,0\n"),
            ": application net has no placements on type 'slow'; expected some beside its "
            "scalability");
  WriteTypedTraining(folder_);
  EXPECT_EQ(ErrorAfter("validation.csv",
                       "application,batch_size,progress,grad_sqr,grad_var\nnet,32,5,1,1\n"
                       "net,32,5,1,1\n"),
            ": application net with batch 32: expected 2 epochs as for the other batches, and "
            "growing progress");
  EXPECT_EQ(ErrorAfter("validation.csv",
                       "application,batch_size,progress,grad_sqr,grad_var\nother,32,5,1,1\n"),
            ": application net has no epochs; expected some");
}

}  // namespace
}  // namespace trainyard::profile
