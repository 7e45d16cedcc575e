// SPDX-License-Identifier: Apache-2.0
// Shares of time by type of GPU, served in rounds (src/policies/gavel).
#include <gtest/gtest.h>

#include "engine_tests/harness.h"
#include "profile/execution_model.h"

namespace trainyard {
namespace {

TestRun RunOf(std::vector<JobSpec> jobs, Cluster cluster, const std::string& policy) {
  return {.jobs = std::move(jobs),
          .cluster = std::move(cluster),
          .policy = policy,
          .placement = "gandiva"};
}

TEST(TimeSharingTest, EqualJobsTakeTurns) {
  const TestResult result = RunTest(
      RunOf({MakeJob(0, 1, 120), MakeJob(0, 1, 120)}, MakeCluster(1, 1), "isolated:round=60"));
  ASSERT_TRUE(result.status.ok()) << result.status.error().message;
  EXPECT_EQ(result.start(0), 0);
  EXPECT_EQ(result.start(1), 60);
  // After 120 s nobody is owed more than the other, and the one that runs goes on.
  EXPECT_EQ(result.end(1), 180);
  EXPECT_EQ(result.end(0), 240);
}

TEST(TimeSharingTest, NobodyIsStoppedForNothing) {
  const TestResult result = RunTest(RunOf({MakeJob(0, 2, 1000), MakeJob(0, 2, 1000)},
                                          MakeCluster(1, 4), "max-min-fairness:round=60"));
  ASSERT_TRUE(result.status.ok()) << result.status.error().message;
  EXPECT_EQ(result.end(0), 1000);
  EXPECT_EQ(result.end(1), 1000);
  EXPECT_EQ(result.records[0].preemptions + result.records[1].preemptions, 0U);
}

// With restarts of 20 s turns are of 200 s at least, however short a round is.
TEST(TimeSharingTest, TurnsAreWorthTheirCost) {
  TestRun run = RunOf({MakeJob(0, 1, 2000), MakeJob(0, 1, 2000)}, MakeCluster(1, 1),
                      "max-min-fairness:round=30");
  run.rules.debt = {};
  run.overheads = profile::OverheadModel(profile::OverheadTable{
      .fallback = {.start = FromSeconds(20), .restart = FromSeconds(20)}, .models = {}});
  const TestResult result = RunTest(run);
  ASSERT_TRUE(result.status.ok()) << result.status.error().message;
  EXPECT_GE(result.start(1), 220);
  EXPECT_LE(result.records[0].preemptions + result.records[1].preemptions, 20U);
  EXPECT_GE(result.records[0].preemptions, 1U);
}

TEST(TimeSharingTest, FreeGpusAreGivenOutBetweenRounds) {
  const TestResult result = RunTest(
      RunOf({MakeJob(0, 1, 100), MakeJob(10, 1, 100)}, MakeCluster(1, 2), "makespan:round=600"));
  ASSERT_TRUE(result.status.ok()) << result.status.error().message;
  EXPECT_EQ(result.start(1), 10);
}

// Each job has half of the time on either node.
TEST(TimeSharingTest, JobsMoveBetweenTypesByTheirShares) {
  Cluster cluster = MakeCluster(2, 1);
  cluster.nodes[0].gpu_type = "A100";
  cluster.nodes[1].gpu_type = "V100";
  cluster.gpu_types = {{.name = "A100", .speed = 3}};
  const std::unique_ptr<ExecutionModel> rates =
      profile::OnTypesOf(cluster, profile::MakeDurationModel());
  TestRun run =
      RunOf({MakeJob(0, 1, 2400), MakeJob(0, 1, 2400)}, cluster, "max-min-fairness:round=60");
  run.rates = rates.get();
  const TestResult result = RunTest(run);
  ASSERT_TRUE(result.status.ok()) << result.status.error().message;
  EXPECT_NEAR(result.end(0), 1200, 120);
  EXPECT_NEAR(result.end(1), 1200, 120);
}

}  // namespace
}  // namespace trainyard
