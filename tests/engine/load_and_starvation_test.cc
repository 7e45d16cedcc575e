// SPDX-License-Identifier: Apache-2.0
// Whole runs under rules that Blox brought: admission by load, the starvation guard, work in whole
// rounds, jobs handed over before their submit time.
#include <gtest/gtest.h>

#include "engine_tests/harness.h"

namespace trainyard {
namespace {

TestRun OnOneNode(std::vector<JobSpec> jobs) {
  return {.jobs = std::move(jobs), .cluster = MakeCluster(1, 4)};
}

TEST(LoadAdmissionTest, LetsJobsInUntilTheyAskForTheThreshold) {
  // 4 GPUs: after 4 of them the sum is at the threshold, so one more is let in.
  TestRun run = OnOneNode({MakeJob(0, 4, 100), MakeJob(1, 4, 100), MakeJob(2, 1, 10)});
  run.policy = "srtf";
  run.admission = "load:threshold=1";
  const TestResult result = RunTest(run);
  ASSERT_TRUE(result.status.ok()) << result.status.error().message;
  EXPECT_EQ(result.start(2), 100);  // outside until then, though it would go first
  run.admission = "load:threshold=2";
  EXPECT_EQ(RunTest(run).start(2), 2);
}

TEST(LoadAdmissionTest, NobodyOvertakesOutside) {
  TestRun run =
      OnOneNode({MakeJob(0, 4, 100), MakeJob(1, 4, 100), MakeJob(2, 4, 100), MakeJob(3, 1, 10)});
  run.policy = "srtf";
  run.admission = "load:threshold=0.5";
  const TestResult result = RunTest(run);
  ASSERT_TRUE(result.status.ok()) << result.status.error().message;
  EXPECT_EQ(result.start(1), 100);
  EXPECT_EQ(result.start(2), 200);
  EXPECT_EQ(result.start(3), 300);
}

// The policies that propose demands leave the jobs outside alone.
TEST(LoadAdmissionTest, HoldsJobsBackFromAllPolicies) {
  TestRun run = OnOneNode({MakeJob(0, 4, 100), MakeJob(1, 4, 100), MakeJob(2, 1, 10)});
  run.admission = "load:threshold=1";
  for (const std::string policy : {"themis", "srtf", "drf", "gandiva"}) {
    run.policy = policy;
    run.placement = policy == "gandiva" ? "gandiva" : "consolidated";
    const TestResult result = RunTest(run);
    ASSERT_TRUE(result.status.ok()) << policy << ": " << result.status.error().message;
    EXPECT_GE(result.start(2), 100) << policy;
  }
}

// Judges the first job of those that wait, and another one by a rule of its own.
class Confused final : public Admission {
 public:
  explicit Confused(std::size_t other) : other_(other) {}
  [[nodiscard]] std::string_view name() const override { return "confused"; }
  [[nodiscard]] std::vector<Verdict> Admit(const Snapshot& snapshot,
                                           Memory* /*memory*/) const override {
    return {{.job = snapshot.unjudged.front()}, {.job = JobAt(other_)}};
  }

 private:
  const std::size_t other_;
};

TEST(AdmissionTest, WhoJudgesJobsThatDoNotWaitForItIsNamed) {
  for (const std::size_t other :
       {std::size_t{0}, std::size_t{7}}) {  // the same twice, and one that there is not
    const Confused confused(other);
    TestRun run = OnOneNode({MakeJob(0, 4, 100)});
    run.own_admission = &confused;
    const TestResult result = RunTest(run);
    ASSERT_FALSE(result.status.ok());
    EXPECT_EQ(result.status.error().message,
              "admission 'confused' judges a job twice, or one that does not wait for a verdict; "
              "expected at most one verdict for each job of Snapshot::unjudged");
  }
}

// A long job and a stream of short ones that keep the node busy.
TestRun Starving(const std::string& policy) {
  std::vector<JobSpec> jobs{MakeJob(0, 4, 1000)};
  for (int i = 0; i < 30; ++i) {
    jobs.push_back(MakeJob(100.0 * i + (i < 5 ? 0 : 700), 4, 100));
  }
  TestRun run = OnOneNode(std::move(jobs));
  run.policy = policy;
  return run;
}

TEST(StarvationGuardTest, WithoutItTheLongJobWaits) {
  EXPECT_EQ(RunTest(Starving("srtf")).end(0), 4000);
}

TEST(StarvationGuardTest, WhoHasWaitedLongEnoughGoesFirstForGood) {
  const TestResult result = RunTest(Starving("srtf:guard=500"));
  ASSERT_TRUE(result.status.ok()) << result.status.error().message;
  EXPECT_EQ(result.start(0), 500);
  EXPECT_EQ(result.end(0), 1500);  // and is not preempted
}

TEST(StarvationGuardTest, WhoHasRunBeforeMayHaveToWaitLonger) {
  TestRun run = Starving("las:quantum=0,guard=300,guard_again=200");
  run.jobs[0] = MakeJob(0, 4, 150);
  run.jobs[1].submit = AtSeconds(20);  // preempts: it has attained nothing
  const TestResult result = RunTest(run);
  ASSERT_TRUE(result.status.ok()) << result.status.error().message;
  EXPECT_EQ(result.start(0), 0);
  EXPECT_LE(result.end(0), 20 + 500 + 150);
  EXPECT_GT(result.end(0), 20 + 300 + 150);
}

TEST(HandoverTest, AJobMayStartBeforeItsSubmitTime) {
  TestRun run = OnOneNode({MakeJob(50, 1, 10)});
  run.jobs[0].handover = AtSeconds(20);
  const TestResult result = RunTest(run);
  EXPECT_EQ(result.start(0), 20);
  EXPECT_EQ(result.end(0), 30);
}

TEST(RateFactorTest, JobsAreSoManyTimesFaster) {
  TestRun run = OnOneNode({MakeJob(0, 1, 140)});
  const auto rates = profile::MakeDurationModel(1.4);
  run.rates = rates.get();
  EXPECT_NEAR(RunTest(run).end(0), 100, 1e-6);
}

TEST(WholeRoundsTest, WhatIsBegunInARoundIsLost) {
  // 3 units in a round of 10 s, of which each takes 3 s.
  class ThreeSeconds final : public ExecutionModel {
   public:
    [[nodiscard]] double TotalWork(const JobSpec& /*job*/) const override { return 7; }
    [[nodiscard]] double Rate(const JobSpec& /*job*/, int /*gpus*/) const override {
      return 1.0 / 3;
    }
    [[nodiscard]] std::span<const int> Levels(const JobSpec& /*job*/) const override { return {}; }
  };
  const ThreeSeconds rates;
  TestRun run = OnOneNode({MakeJob(2, 1, 21)});
  run.rates = &rates;
  run.rules.clock = {
      .mode = model::ClockRules::Mode::kRounds, .length = FromSeconds(10), .anchor = TimePoint{}};
  run.rules.quantum = model::Quantum::kIterationPerRound;
  run.rules.end.finish = model::EndRule::Finish::kRoundEnd;
  const TestResult result = RunTest(run);
  EXPECT_EQ(result.start(0), 10);
  EXPECT_EQ(result.logged(0), 40);  // 3 + 3 + 1
}

}  // namespace
}  // namespace trainyard
