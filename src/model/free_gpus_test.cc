// SPDX-License-Identifier: Apache-2.0
#include "trainyard/free_gpus.h"

#include <gtest/gtest.h>

#include <set>

#include "model/job_record.h"

namespace trainyard::model {
namespace {

Cluster MakeCluster(int nodes, int gpus) {
  Cluster cluster;
  cluster.nodes.assign(static_cast<std::size_t>(nodes), NodeSpec{.gpus = gpus});
  return cluster;
}

TEST(NodeSetTest, FindsTheFirstMemberAtOrAfter) {
  NodeSet set(10000);
  std::set<std::size_t> model;
  for (const std::size_t node : {3U, 64U, 700U, 4096U, 9999U}) {
    set.Insert(NodeAt(node));
    model.insert(node);
  }
  for (std::size_t from = 0; from < 10000; from += 7) {
    const auto expected = model.lower_bound(from);
    const std::optional<NodeId> found = set.First(NodeAt(from));
    ASSERT_EQ(found.has_value(), expected != model.end()) << from;
    if (found) {
      EXPECT_EQ(Index(*found), *expected);
    }
  }
}

TEST(NodeSetTest, ForgetsErasedMembers) {
  NodeSet set(200);
  set.Insert(NodeAt(130));
  set.Erase(NodeAt(130));
  EXPECT_TRUE(set.empty());
  EXPECT_FALSE(set.First().has_value());
}

TEST(FreeGpusTest, TakingMovesTheNodeToItsNewCount) {
  const Cluster cluster = MakeCluster(2, 4);
  FreeGpus free(cluster);
  EXPECT_EQ(free.total(), 8);
  free.Take({{.node = NodeAt(1), .gpus = 0b0011}});
  EXPECT_EQ(free.total(), 6);
  EXPECT_EQ(free.NodesWith(2).First(), NodeAt(1));
  EXPECT_EQ(free.NodesWith(4).First(), NodeAt(0));
  free.Return({{.node = NodeAt(1), .gpus = 0b0011}});
  EXPECT_EQ(free.NodesWith(4).size(), 2U);
}

TEST(FreeGpusTest, ANodeThatIsDownHasNothing) {
  const Cluster cluster = MakeCluster(2, 4);
  FreeGpus free(cluster);
  free.SetUp(NodeAt(0), false);
  EXPECT_EQ(free.total(), 4);
  EXPECT_FALSE(free.AreFree({{.node = NodeAt(0), .gpus = 1}}));
  free.SetUp(NodeAt(0), true);
  EXPECT_EQ(free.total(), 8);
}

TEST(FreeGpusDeathTest, AGpuCannotBeTakenTwice) {
  const Cluster cluster = MakeCluster(1, 2);
  FreeGpus free(cluster);
  free.Take({{.node = NodeAt(0), .gpus = 1}});
  EXPECT_DEATH(free.Take({{.node = NodeAt(0), .gpus = 1}}), "CHECK");
}

TEST(CheckedPhaseDeathTest, ACompletedJobStaysCompleted) {
  CheckedPhase phase;
  for (const JobPhase next :
       {JobPhase::kArrived, JobPhase::kWaiting, JobPhase::kRunning, JobPhase::kCompleted}) {
    phase.To(next);
  }
  EXPECT_DEATH(phase.To(JobPhase::kRunning), "CHECK");
}

}  // namespace
}  // namespace trainyard::model
