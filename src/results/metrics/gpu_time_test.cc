// SPDX-License-Identifier: Apache-2.0
#include "results/metrics/metrics.h"

#include <gtest/gtest.h>

#include "support/hand_made_run.h"

namespace trainyard::results {
namespace {

TEST(GpuTimeTest, SumsToTheGpusTimesTheMakespan) {
  const std::optional<GpuTime> time = GpuTimeOf(HandMadeRun());
  ASSERT_TRUE(time.has_value());
  EXPECT_DOUBLE_EQ(time->useful, 1400.5);
  EXPECT_DOUBLE_EQ(time->overhead, 100);
  EXPECT_DOUBLE_EQ(time->idle, 16 * 230 - 1500.5);
}

TEST(GpuTimeTest, IdleIsNeverNegative) {
  RunResult run = HandMadeRun();
  run.jobs[4].attained_service = 1e6;  // still held at the stop
  EXPECT_EQ(GpuTimeOf(run)->idle, 0);
}

TEST(GpuTimeTest, NoneWithoutACompletedJob) {
  EXPECT_FALSE(GpuTimeOf(RunOf({{.name = "never"}})).has_value());
}

TEST(SharesByTest, TheGreatestFirst) {
  const std::vector<Share> shares = SharesBy(&JobSpec::user, HandMadeRun());
  ASSERT_EQ(shares.size(), 2U);
  EXPECT_EQ(shares[0].name, "");
  EXPECT_EQ(shares[0].jobs, 4);
  EXPECT_DOUBLE_EQ(shares[0].gpu_seconds, 1300.5);
  EXPECT_EQ(shares[0].jct_mean, 125.25);
  EXPECT_EQ(shares[1].name, "ann");
  EXPECT_EQ(shares[1].jct_mean, 100);
}

TEST(SharesByTest, EmptyWhereNoJobStatesAny) {
  EXPECT_TRUE(SharesBy(&JobSpec::user, RunOf({{.name = "x"}, {.name = "y"}})).empty());
}

}  // namespace
}  // namespace trainyard::results
