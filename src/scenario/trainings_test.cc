// SPDX-License-Identifier: Apache-2.0
// Runs whose jobs are measured trainings that adapt their batches.
#include <gtest/gtest.h>

#include <string>

#include "scenario/scenario.h"
#include "support/measured_trainings.h"
#include "support/scratch_folder.h"

namespace trainyard::scenario {
namespace {

class TrainingsTest : public testing::Test {
 protected:
  TrainingsTest() {
    WriteTraining(folder_, "net");
    WriteTraining(folder_, "other");
  }
  Result<results::RunResult> Run(const PresetRequest& names, const std::string& trace = kTrace,
                                 const std::string& cluster = "2x4") {
    Result<Inputs> inputs = ReadInputs(
        {.trace = folder_.Write("t.csv", trace), .cluster = cluster, .profiles = folder_.path()});
    if (!inputs.ok()) {
      return inputs.error();
    }
    inputs_.push_back(std::make_unique<Inputs>(std::move(inputs).value()));
    return RunScenario(*inputs_.back(), {.names = names});
  }
  std::string ErrorOf(const PresetRequest& names, const std::string& trace = kTrace) {
    const Result<results::RunResult> run = Run(names, trace);
    return run.ok() ? "no error" : run.error().message;
  }

  static constexpr const char* kTrace =
      "name,time,application,num_replicas,batch_size,ddl\n"
      "a,0,net,1,32,600\nb,7,other,2,64,10\nc,30,net,4,128,40\n";
  ScratchFolder folder_;
  std::vector<std::unique_ptr<Inputs>> inputs_;
};

TEST_F(TrainingsTest, EndUnderPoliciesOfAllKinds) {
  for (const char* policy : {"fifo", "srtf", "las", "optimus", "elastic-edf", "pollux", "sia"}) {
    const Result<results::RunResult> run = Run({.policy = policy});
    ASSERT_TRUE(run.ok()) << policy << ": " << run.error().message;
    for (const results::JobResult& job : run.value().jobs) {
      EXPECT_EQ(job.outcome, results::Outcome::kCompleted) << policy;
    }
  }
}

TEST_F(TrainingsTest, TheBatchIsTheBestOneWhateverThePolicy) {
  const Result<results::RunResult> run = Run({.policy = "fifo"});
  ASSERT_TRUE(run.ok()) << run.error().message;
  // On four GPUs an iteration with a batch of 32 takes 38 ms. The gradient is noisy in the second
  // epoch, so that larger batches are worth it.
  const results::JobResult& job = run.value().jobs[2];
  EXPECT_LT(Seconds(job.productive), 0.8 * 300 * 0.038);
  EXPECT_GT(Seconds(job.productive), 100 * 0.038);
}

TEST_F(TrainingsTest, TheSameRunHasTheSameJournal) {
  const Result<results::RunResult> one = Run({.preset = "pollux"});
  const Result<results::RunResult> other = Run({.preset = "pollux"});
  ASSERT_TRUE(one.ok() && other.ok()) << one.error().message;
  EXPECT_EQ(one.value().journal_digest, other.value().journal_digest);
  for (const results::JobResult& job : one.value().jobs) {
    EXPECT_EQ(job.end->time_since_epoch().count() % 1'000'000, 0) << "ends at whole seconds";
  }
}

TEST_F(TrainingsTest, DeadlinesOfTheWorkloadCount) {
  const Result<results::RunResult> run = Run({.preset = "pollux"});
  ASSERT_TRUE(run.ok()) << run.error().message;
  EXPECT_EQ(run.value().jobs[0].spec->deadline, AtSeconds(600));
}

TEST_F(TrainingsTest, OnSeveralTypesOfGpuEachHasItsOwnTimes) {
  ScratchFolder typed;
  WriteTypedTraining(typed);
  const std::string cluster = typed.Write("c.toml",
                                          "[[nodes]]\ngpus = 2\ncount = 2\ngpu_type = \"slow\"\n"
                                          "[[nodes]]\ngpus = 4\ngpu_type = \"fast\"\n");
  const std::string trace = "name,time,application,num_replicas,batch_size\na,0,net,1,32\n";
  const auto run = [&](const PresetRequest& names, const std::string& on) {
    const Result<Inputs> inputs =
        ReadInputs({.trace = typed.Write("t.csv", trace), .cluster = on, .profiles = typed.path()});
    EXPECT_TRUE(inputs.ok());
    const Result<results::RunResult> done = RunScenario(inputs.value(), {.names = names});
    return done.ok() ? std::to_string(done.value().jobs[0].preemptions)
                     : done.error().message.substr(done.error().message.find("job a"));
  };
  EXPECT_EQ(run({.policy = "fifo"}, cluster), "0");
  EXPECT_EQ(run({.policy = "sia"}, cluster), "0");
  EXPECT_EQ(run({.policy = "las"}, "2x4"),
            "job a is a training of 'net', which was not measured on GPUs of no stated type; "
            "expected a cluster of types that " +
                typed.path() + " has");
}

TEST_F(TrainingsTest, WhatCannotGoOnIsRefused) {
  EXPECT_NE(ErrorOf({}, "name,time,application,num_replicas,batch_size\na,0,vgg,1,32\n")
                .find("t.csv:2: job a is no training of an application 'vgg' with GPUs"),
            std::string::npos);
  EXPECT_NE(ErrorOf({.policy = "fifo", .placement = "count"}).find("lose no work"),
            std::string::npos);
  const Result<Inputs> none =
      ReadInputs({.trace = folder_.Write("t.csv", kTrace), .cluster = "2x4"});
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().message.find("states no work"), std::string::npos);
  const Result<Inputs> nowhere = ReadInputs(
      {.trace = folder_.Write("t.csv", kTrace), .cluster = "2x4", .profiles = "nowhere"});
  ASSERT_FALSE(nowhere.ok());
  EXPECT_TRUE(nowhere.error().message.ends_with("(--profiles), and there is no nowhere"));
}

}  // namespace
}  // namespace trainyard::scenario
