// SPDX-License-Identifier: Apache-2.0
// Gandiva on hand-made jobs: where they are placed, whose turn it is, and who gets more nodes.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "support/gandiva_jobs.h"
#include "support/sanitized.h"

namespace trainyard::policies {
namespace {

// ---------------------------------------------------------------------------------------- options

TEST_F(GandivaTest, BadOptionsAreRefused) {
  for (const char* quantum : {"0", "0.5", "1e10"}) {
    EXPECT_EQ(PolicyError("gandiva:quantum=" + std::string(quantum)),
              "policy 'gandiva': quantum must lie between 1 and 1e9 seconds");
  }
}

TEST_F(GandivaTest, ItNamesTheGpusAndLeavesTheirNumberAlone) {
  Use("", 1, 4);
  EXPECT_TRUE(policy_->traits().may.name_gpus);
  EXPECT_FALSE(policy_->traits().may.resize);
  EXPECT_FALSE(policy_->traits().needs.work_left);
}

// -------------------------------------------------------------------------------------- placement

TEST_F(GandivaTest, NoJobsNoDemands) {
  Use("", 1, 4);
  EXPECT_EQ(Decide(0), "....");
  EXPECT_EQ(wake_, -1);
}

TEST_F(GandivaTest, JobsOfOneSizeShareNodesUntilTheseAreFull) {
  Use("", 3, 4);
  Add(2, 1);
  Add(3, 2);
  EXPECT_EQ(Decide(0), "01.. 2233 44..");
  EXPECT_EQ(wake_, -1);
}

TEST_F(GandivaTest, WhereThereIsNoNodeJobsTakeTurnsAndHaveStarted) {
  Use("", 1, 2);
  Add(4, 1);
  EXPECT_EQ(Decide(0), "01");
  EXPECT_EQ(told_, Ids({2, 3}));
  EXPECT_EQ(Decide(1), "01");
  EXPECT_EQ(told_, Ids()) << "once is enough";
}

TEST_F(GandivaTest, AJobLargerThanTheClusterWaitsForEver) {
  Use("", 2, 4);
  Add(1, 9);
  Add(1, 4);
  EXPECT_EQ(Decide(0), "1111 ....");
}

TEST_F(GandivaTest, ALargeGangTakesWholeNodes) {
  Use("", 3, 4);
  Add(1, 6);
  Add(1, 1);
  EXPECT_EQ(Decide(0), "0000 00.. 1...");
}

TEST_F(GandivaTest, EverySizeHasItsOwnGroup) {
  Use("", 3, 8);
  Add(2, 3);
  Add(1, 4);
  Add(1, 5);
  EXPECT_EQ(Decide(0), "000111.. 2222.... 33333...");
}

TEST_F(GandivaTest, WhoLeavesMakesRoomAndNobodyElseMoves) {
  Use("", 1, 8);
  Add(4, 2);
  EXPECT_EQ(Decide(0), "00112233");
  Remove(1);
  EXPECT_EQ(Decide(5), "00..2233");
  Add(1, 2);
  EXPECT_EQ(Decide(6), "00442233");
}

TEST_F(GandivaTest, NodesOfAnotherSizeAreNotUsed) {
  Use("", 2, 4);
  cluster_.nodes[0].gpus = 2;
  Add(2, 4);
  EXPECT_EQ(Decide(0), ".. 0000");
}

TEST_F(GandivaTest, ASizeWithoutANodeWaits) {
  Use("", 1, 4);
  CheckThatASizeWithoutANodeWaits();
}

TEST_F(GandivaTest, JobsOfANodeThatIsLostGoOnElsewhere) {
  Use("", 2, 4);
  CheckThatJobsOfALostNodeGoOn();
}

// ------------------------------------------------------------------------------------------ turns

TEST_F(GandivaTest, JobsTakeTurnsEveryQuantum) {
  Use(":quantum=30", 1, 2);
  Add(3, 1);
  EXPECT_EQ(Decide(5), "01");
  EXPECT_EQ(wake_, 35);
  EXPECT_EQ(Decide(20), "01");
  EXPECT_EQ(wake_, 35);
  EXPECT_EQ(Decide(35), "02") << "job 0 goes on where it is";
  EXPECT_EQ(Decide(65), "12");
  EXPECT_EQ(Decide(100), "10");
  EXPECT_EQ(wake_, 130);
  Remove(1);
  EXPECT_EQ(Decide(110), "20");
  EXPECT_EQ(wake_, -1) << "nobody waits";
}

TEST_F(GandivaTest, WhoEndsWithTheSliceGivesItsTurnAway) {
  Use("", 1, 2);
  Add(4, 1);
  EXPECT_EQ(Decide(0), "01");
  Remove(0);
  EXPECT_EQ(Decide(60), "23");
  EXPECT_EQ(Decide(120), "21") << "2 and 3 have been first; 1 has its first turn since";
}

TEST_F(GandivaTest, ThePictureInTheDocsIsRight) {
  Use("", 4, 4);
  Add(4, 1);
  Add(1, 2);
  Add(1, 8);
  Add(2, 1);
  EXPECT_EQ(Decide(0), "0123 44.. 5555 5555");
  EXPECT_EQ(Decide(60), "0167 44.. 5555 5555");
}

TEST_F(GandivaTest, AllGetTheSameTime) {
  Use("", 2, 3);
  Add(10, 1);
  std::map<char, int> quanta;
  for (int i = 0; i < 50; ++i) {
    for (const char job : Decide(60 * i)) {
      ++quanta[job];
    }
  }
  for (char job = '0'; job <= '9'; ++job) {
    EXPECT_EQ(quanta[job], 30) << job;
  }
}

// --------------------------------------------------------------------------- groups=balanced

TEST_F(GandivaTest, FreeNodesGoWhereJobsTakeTurns) {
  Use("", 2, 2);
  Add(1, 2);
  Add(4, 1);
  EXPECT_EQ(Decide(0), "00 12");
  Remove(0);
  EXPECT_EQ(Decide(10), "43 12") << "who runs stays";
  EXPECT_EQ(wake_, -1);
}

TEST_F(GandivaTest, ANewSizeGetsANodeFromTheGroupWithMoreThanItsShare) {
  Use("", 3, 2);
  Add(6, 1);
  EXPECT_EQ(Decide(0), "01 23 45");
  Add(1, 2);
  EXPECT_EQ(Decide(10), "01 23 66");
  EXPECT_EQ(wake_, 70);
  EXPECT_EQ(Decide(20), "01 23 66") << "balanced already";
}

TEST_F(GandivaTest, NodesFollowDemand) {
  Use("", 4, 2);
  Add(8, 1);
  EXPECT_EQ(Decide(0), "01 23 45 67");
  Add(4, 2);
  EXPECT_EQ(Decide(10), "99 23 45 88");
  for (const std::size_t job : Ids({0, 1, 4, 5, 6})) {
    Remove(job);
  }
  EXPECT_EQ(Decide(20), "99 23 :: 88") << "7 waits";
}

TEST_F(GandivaTest, AGroupWithinItsShareKeepsItsNodes) {
  Use("", 2, 2);
  Add(2, 1);
  Add(1, 2);
  EXPECT_EQ(Decide(0), "01 22");
  Add(1, 4);
  EXPECT_EQ(Decide(10), "01 22");
  Remove(2);
  EXPECT_EQ(Decide(20), "01 ..") << "4 GPUs are two nodes";
  Remove(0);
  Remove(1);
  EXPECT_EQ(Decide(30), "33 33");
}

// ----------------------------------------------------------------------------------------- memory

TEST_F(GandivaTest, ACopyOfTheMemoryGoesItsOwnWay) {
  Use("", 1, 1);
  Add(2, 1);
  EXPECT_EQ(Decide(0), "0");
  const std::unique_ptr<Memory> copy = CopyOf(*memory_, *policy_);
  EXPECT_EQ(Draw(Propose(60, copy.get())), "1");
  EXPECT_EQ(Draw(Propose(120, copy.get())), "0");
  EXPECT_EQ(Decide(30), "0");
  EXPECT_EQ(wake_, 60);
  EXPECT_EQ(Decide(60), "1");
}

TEST_F(GandivaRunTest, GpusNeverOverlapNoNodeIsIdleAndAllJobsEnd) {
  for (int round = 0; round < Rounds(150) && !HasFailure(); ++round) {
    UseRandomCluster("", false);
    ASSERT_TRUE(RunAll(60, true)) << round;
  }
}

TEST_F(GandivaRunTest, AllJobsEndWhenNodesFail) {
  for (int round = 0; round < Rounds(150) && !HasFailure(); ++round) {
    UseRandomCluster("", true);
    ASSERT_TRUE(RunAll(60, false)) << round;
  }
}

}  // namespace
}  // namespace trainyard::policies
