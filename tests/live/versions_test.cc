// SPDX-License-Identifier: Apache-2.0
// Controller, agents and supervisors of two versions beside one another, as while a cluster is
// upgraded. TRAINYARD_FORMER names the program of the former version (./dev prove upgrade); without
// it this one plays both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "live_tests/cluster.h"

namespace trainyard {
namespace {

using testing::HasSubstr;

std::string Former() {
  const char* const former = std::getenv("TRAINYARD_FORMER");
  return former != nullptr ? former : "";
}

class VersionsTest : public testing::Test {
 protected:
  // A worker that runs until Go, and says so.
  int SubmitThatWaits(const Words& options) {
    return cluster_.SubmitWorker(options, "while [ ! -e " + Path() + " ]; do sleep 0.1; done");
  }
  void Go() const { std::ofstream(Path()) << '\n'; }
  void ExpectRunsOn(int job) const {
    EXPECT_EQ(cluster_.StateOf(job), v1::RUNNING) << cluster_.StatusOf(job).reason();
    EXPECT_EQ(cluster_.StatusOf(job).attempt(), 1U);
  }
  // All that agents do for jobs, once.
  void ExpectServes() const {
    const int done = cluster_.Submit({"--gpus", "1"}, {"sh", "-c", "echo so it is"});
    EXPECT_TRUE(cluster_.AwaitState(done, v1::COMPLETED));
    EXPECT_THAT(cluster_.Ask({"logs", std::to_string(done)}).out, HasSubstr("so it is"));
    const int fails = cluster_.Submit({"--gpus", "1"}, {"sh", "-c", "exit 7"});
    EXPECT_TRUE(cluster_.AwaitState(fails, v1::FAILED));
    EXPECT_EQ(cluster_.StatusOf(fails).exit_code(), 7);
    const int unwanted = cluster_.SubmitWorker({"--gpus", "1"}, "sleep 600");
    EXPECT_TRUE(cluster_.AwaitLines(unwanted, "start", 1));
    EXPECT_EQ(cluster_.Ask({"cancel", std::to_string(unwanted)}).status, 0);
    EXPECT_TRUE(cluster_.AwaitState(unwanted, v1::CANCELLED));
  }
  void AwaitUp() const {
    EXPECT_TRUE(
        Eventually([this] { return cluster_.NodeStatus(0).up() && cluster_.NodeStatus(1).up(); }));
  }
  [[nodiscard]] std::string Path() const { return cluster_.Path("go"); }

  LiveCluster cluster_{{.nodes = 2, .gpus = 3}};
};

TEST_F(VersionsTest, TheControllerAndThenEachAgentIsUpgradedUnderJobs) {
  cluster_.options().controller_program = Former();
  cluster_.options().agent_program = Former();
  cluster_.Start();
  const int one = SubmitThatWaits({"--gpus", "1"});
  const int gang = SubmitThatWaits({"--gpus", "4", "--workers", "per-node"});
  ASSERT_TRUE(cluster_.AwaitLines(one, "start", 1));
  ASSERT_TRUE(cluster_.AwaitLines(gang, "start", 2));

  cluster_.KillController();
  cluster_.options().controller_program.clear();
  cluster_.StartController();
  AwaitUp();
  ExpectRunsOn(one);
  ExpectRunsOn(gang);
  ExpectServes();  // by agents of the former version

  cluster_.options().agent_program.clear();
  for (int node = 0; node < 2; ++node) {
    cluster_.KillAgent(node);
    cluster_.StartAgent(node);
    AwaitUp();
    ExpectRunsOn(one);
    ExpectRunsOn(gang);
    ExpectServes();
  }
  EXPECT_EQ(cluster_.Ask({"cancel", std::to_string(gang)}).status, 0);
  EXPECT_TRUE(cluster_.AwaitState(gang, v1::CANCELLED)) << "by supervisors of the former version";
  Go();
  EXPECT_TRUE(cluster_.AwaitState(one, v1::COMPLETED));
  EXPECT_EQ(cluster_.LinesOf(one, "start").size(), 1U);
}

TEST_F(VersionsTest, AgentsMayBeUpgradedFirst) {
  cluster_.options().controller_program = Former();
  cluster_.Start();
  ExpectServes();
}

TEST_F(VersionsTest, AnAgentIsRolledBack) {
  cluster_.Start();
  const int one = SubmitThatWaits({"--gpus", "1"});
  ASSERT_TRUE(cluster_.AwaitLines(one, "start", 1));
  cluster_.options().agent_program = Former();
  for (int node = 0; node < 2; ++node) {
    cluster_.KillAgent(node);
    cluster_.StartAgent(node);
  }
  AwaitUp();
  ExpectRunsOn(one);
  ExpectServes();
  Go();
  EXPECT_TRUE(cluster_.AwaitState(one, v1::COMPLETED)) << "a supervisor of this version";
}

}  // namespace
}  // namespace trainyard
