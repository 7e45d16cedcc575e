// SPDX-License-Identifier: Apache-2.0
// State folders of other versions (states/README.md): gone on with, or refused and left as they
// are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "live_tests/cluster.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// The controller's folder becomes a copy of that of the version.
void TakeState(const LiveCluster& cluster, const std::string& version) {
  const fs::path folder = cluster.Path("controller");
  fs::create_directories(folder);
  fs::copy_file(fs::path(TRAINYARD_SOURCE_DIR) / "tests/live/states" / version / "controller.db",
                folder / "controller.db");
  fs::permissions(folder / "controller.db", fs::perms::owner_read | fs::perms::owner_write);
}

// What has been is known, what ran is started on nodes that know nothing of it, and what waited
// gets its turn.
void ExpectGoesOn(const std::string& version, const Words& options = {}) {
  LiveCluster cluster({.lease = kShortLease, .grace = 1});
  TakeState(cluster, version);
  Words& policy = cluster.options().policy;
  policy.insert(policy.end(), options.begin(), options.end());
  cluster.StartController();
  EXPECT_EQ(cluster.StateOf(1), v1::COMPLETED);
  EXPECT_EQ(cluster.StatusOf(1).request().name(), "done");
  EXPECT_EQ(cluster.StateOf(2), v1::FAILED);
  EXPECT_EQ(cluster.StatusOf(2).exit_code(), 3);
  EXPECT_EQ(cluster.StatusOf(3).attempt(), 1U);
  EXPECT_EQ(cluster.StateOf(4), v1::WAITING);
  EXPECT_EQ(cluster.StatusOf(4).request().gpus(), 3);
  EXPECT_EQ(cluster.StateOf(5), v1::CANCELLED);
  fs::create_directory(cluster.Path("checkpoints"));
  std::ofstream(cluster.Path("checkpoints/go")) << '\n';
  cluster.StartAgent(0);
  cluster.StartAgent(1);
  EXPECT_TRUE(cluster.AwaitState(3, v1::COMPLETED));
  EXPECT_TRUE(cluster.AwaitState(4, v1::COMPLETED));
  EXPECT_EQ(cluster.Submit({"--gpus", "1"}, {"true"}), 6);
  EXPECT_TRUE(cluster.AwaitState(6, v1::COMPLETED));
  cluster.KillController();  // and what it has written is its own
  cluster.StartController();
  EXPECT_EQ(cluster.StateOf(6), v1::COMPLETED);
}

TEST(StatesTest, ThatOf010GoesOnByItsJournal) { ExpectGoesOn("0.1.0"); }

TEST(StatesTest, ThatOf020GoesOn) { ExpectGoesOn("0.2.0"); }

TEST(StatesTest, ThatOf020GoesOnByItsJournal) {
  ExpectGoesOn("0.2.0", {"--snapshot-entries", "0"});
}

TEST(StatesTest, AJournalOfOtherDecisionsIsRefusedAndKept) {
  LiveCluster cluster({.policy = {"--policy", "las:quantum=0"}});
  TakeState(cluster, "0.1.0-las");
  const auto refusal = [&cluster] {
    const Answer answer = cluster.Run(cluster.ControllerArguments());
    EXPECT_EQ(answer.status, 1);
    return answer.err;
  };
  const std::string first = refusal();
  EXPECT_THAT(first, HasSubstr(cluster.Path("controller") + ": was written by Trainyard 0.1.0 "));
  EXPECT_THAT(first, HasSubstr("the replay differs from the journal at 0."));
  EXPECT_THAT(first, HasSubstr("expected the former until all jobs have ended, or another --state. "
                               "The journal is as it was"));
  EXPECT_EQ(refusal(), first) << "a refusal is no takeover";
}

}  // namespace
}  // namespace trainyard
