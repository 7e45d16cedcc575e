// SPDX-License-Identifier: Apache-2.0
#include "results/metrics/allocation_recorder.h"

#include <gtest/gtest.h>

#include <tuple>

namespace trainyard::results {
namespace {

constexpr JobId kA = JobAt(0);
constexpr JobId kB = JobAt(1);

Cluster TwoNodes() { return {.nodes = {{.name = "n0", .gpus = 4}, {.name = "n1", .gpus = 4}}}; }

// Half of the jobs need one GPU, the others more than a node has.
const std::vector<JobSpec>& RecordedJobs() {
  static const std::vector<JobSpec> jobs{{.gpus = 1}, {.gpus = 6}};
  return jobs;
}

model::Action Gives(model::ActionKind kind, JobId job, Slices slices) {
  return {.kind = kind, .job = job, .grant = {.gpus = 1, .slices = std::move(slices)}};
}

model::Action Takes(model::ActionKind kind, JobId job) { return {.kind = kind, .job = job}; }

Slice On(std::size_t node, std::uint64_t gpus) { return {.node = NodeAt(node), .gpus = gpus}; }

using RecordedRow = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t, double, double>;

std::vector<RecordedRow> RowsOf(const Allocations& allocations) {
  std::vector<RecordedRow> rows;
  for (const Holding& holding : allocations.holdings) {
    rows.emplace_back(holding.job, holding.node, holding.gpus, Seconds(holding.start),
                      Seconds(holding.end));
  }
  return rows;
}

class AllocationRecorderTest : public testing::Test {
 protected:
  void Take(double seconds, const model::Action& action) {
    recorder_.Take(AtSeconds(seconds), {&action, 1});
  }

  AllocationRecorder recorder_{TwoNodes(), RecordedJobs()};
};

TEST_F(AllocationRecorderTest, FromLaunchToReleaseOnEveryNode) {
  Take(1, Gives(model::ActionKind::kLaunch, kA, {On(0, 0b1111), On(1, 0b0011)}));
  Take(5, Takes(model::ActionKind::kRelease, kA));
  EXPECT_EQ(RowsOf(recorder_.Finish(AtSeconds(9))),
            (std::vector<RecordedRow>{{0, 0, 0b1111, 1, 5}, {0, 1, 0b0011, 1, 5}}));
}

TEST_F(AllocationRecorderTest, ChangesBeginAHoldingOfTheirOwn) {
  Take(0, Gives(model::ActionKind::kLaunch, kA, {On(0, 0b1)}));
  Take(2, Gives(model::ActionKind::kResize, kA, {On(0, 0b11)}));
  Take(3, Gives(model::ActionKind::kTune, kA, {On(0, 0b11)}));
  Take(4, Gives(model::ActionKind::kMigrate, kA, {On(1, 0b11)}));
  Take(5, Takes(model::ActionKind::kPreempt, kA));
  Take(6, Takes(model::ActionKind::kRelease, kA));
  EXPECT_EQ(RowsOf(recorder_.Finish(AtSeconds(9))),
            (std::vector<RecordedRow>{{0, 0, 0b1, 0, 2}, {0, 0, 0b11, 2, 4}, {0, 1, 0b11, 4, 5}}));
}

TEST_F(AllocationRecorderTest, ANewAttemptOnTheSameGpusGoesOn) {
  Take(0, Gives(model::ActionKind::kLaunch, kA, {On(0, 0b1)}));
  Take(2, Gives(model::ActionKind::kMigrate, kA, {On(0, 0b1)}));
  EXPECT_EQ(RowsOf(recorder_.Finish(AtSeconds(9))), (std::vector<RecordedRow>{{0, 0, 0b1, 0, 9}}));
}

TEST_F(AllocationRecorderTest, WhatLastsForNoTimeIsLeftOut) {
  Take(3, Gives(model::ActionKind::kLaunch, kA, {On(0, 0b1)}));
  Take(3, Takes(model::ActionKind::kPreempt, kA));
  EXPECT_TRUE(recorder_.Finish(AtSeconds(9)).holdings.empty());
}

TEST_F(AllocationRecorderTest, FreeGpusOfPartlyHeldNodesAreFragmentedForLargerJobs) {
  EXPECT_EQ(recorder_.gpus_fragmented(), 0);
  Take(0, Gives(model::ActionKind::kLaunch, kA, {On(0, 0b1)}));
  EXPECT_EQ(recorder_.gpus_fragmented(), 1.5);                   // three free, for every second job
  Take(1, Gives(model::ActionKind::kLaunch, kB, {On(0, 0b1)}));  // shared
  EXPECT_EQ(recorder_.gpus_fragmented(), 1.5);
  Take(2, Takes(model::ActionKind::kRelease, kA));
  EXPECT_EQ(recorder_.gpus_fragmented(), 1.5);
  Take(3, Takes(model::ActionKind::kRelease, kB));
  EXPECT_EQ(recorder_.gpus_fragmented(), 0);
  Take(4, Gives(model::ActionKind::kLaunch, kA, {On(0, 0b1111)}));
  EXPECT_EQ(recorder_.gpus_fragmented(), 0);
}

TEST(AllocationRecorderLimitTest, BeyondItTheRecordIsNotComplete) {
  AllocationRecorder recorder(TwoNodes(), RecordedJobs(), 1);
  const model::Action both = Gives(model::ActionKind::kLaunch, kA, {On(0, 0b1), On(1, 0b1)});
  recorder.Take(AtSeconds(0), {&both, 1});
  const Allocations allocations = recorder.Finish(AtSeconds(1));
  EXPECT_EQ(allocations.holdings.size(), 1U);
  EXPECT_FALSE(allocations.complete);
}

}  // namespace
}  // namespace trainyard::results
