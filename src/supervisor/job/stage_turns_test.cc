// SPDX-License-Identifier: Apache-2.0
// Jobs that take turns in a pretended world with a clock of its own. What must hold is looked at
// from outside: from when each stage began and ended.
#include "supervisor/job/stage_turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "supervisor/job/stage_desk.h"
#include "support/turns_world.h"

namespace trainyard::supervisor {
namespace {

using Clock = StageTurns::Clock;
using std::chrono::milliseconds;
using StageKey = AttemptKey;

std::vector<StageKey> Going(StageTurns& turns) {
  std::vector<StageKey> keys;
  for (const StageTurns::Go& go : turns.TakeGoes()) {
    keys.push_back(go.key);
  }
  return keys;
}

class StageTurnsTest : public testing::Test {
 protected:
  StageTurnsTest() {
    turns_.Join(kA, 1, TurnsOf(0));
    turns_.Join(kB, 1, TurnsOf(2));
  }
  const StageKey kA{1, 1};
  const StageKey kB{2, 1};
  StageTurns turns_;
};

TEST_F(StageTurnsTest, OneLoadsWhileTheOtherComputes) {
  turns_.Want(kA, v1::LOAD, kBegin);
  EXPECT_EQ(Going(turns_), std::vector{kA});
  turns_.Want(kB, v1::FORWARD, kBegin);  // while A loads, this is its turn
  EXPECT_EQ(Going(turns_), std::vector{kB});
  turns_.End(kA, kBegin + milliseconds(1));
  turns_.Want(kA, v1::FORWARD, kBegin + milliseconds(1));
  EXPECT_TRUE(Going(turns_).empty());  // B computes
  turns_.Want(kB, v1::LOAD, kBegin + milliseconds(2));
  std::vector<StageKey> both = Going(turns_);
  std::sort(both.begin(), both.end());
  EXPECT_EQ(both, (std::vector{kA, kB}));
}

TEST_F(StageTurnsTest, WhoIsAloneNeverWaits) {
  for (int i = 0; i < 10; ++i) {
    for (const v1::Stage stage : {v1::LOAD, v1::FORWARD, v1::COMMUNICATION}) {
      turns_.Want(kA, stage, kBegin + milliseconds(i));
      EXPECT_EQ(Going(turns_), std::vector{kA});
    }
  }
  EXPECT_FALSE(turns_.IterationOf(kA));  // of no group
}

TEST_F(StageTurnsTest, WhoHangsIsNotWaitedForBeyondTheBound) {
  turns_.Want(kA, v1::FORWARD, kBegin);
  turns_.Want(kB, v1::FORWARD, kBegin);
  EXPECT_EQ(Going(turns_), std::vector{kA});
  const Clock::time_point bound = kBegin + StageTurns::kStageBound + milliseconds(800);
  EXPECT_EQ(turns_.next_due(), bound);
  turns_.OnTime(bound - milliseconds(1));
  EXPECT_TRUE(Going(turns_).empty());
  turns_.OnTime(bound);
  EXPECT_EQ(Going(turns_), std::vector{kB});
  const std::vector<StageTurns::Late> late = turns_.TakeLate();
  ASSERT_EQ(late.size(), 1U);
  EXPECT_EQ(late[0].key, kA);
  EXPECT_EQ(late[0].stage, v1::FORWARD);
  EXPECT_FALSE(late[0].alone || late[0].over);
  turns_.Want(kA, v1::FORWARD, bound);  // it has come back, and waits for its turn
  EXPECT_TRUE(Going(turns_).empty());
  const std::vector<StageTurns::Late> back = turns_.TakeLate();
  ASSERT_EQ(back.size(), 1U);
  EXPECT_TRUE(back[0].key == kA && back[0].over);
  turns_.Leave(kB, bound);
  EXPECT_EQ(Going(turns_), std::vector{kA});
}

TEST_F(StageTurnsTest, WhoIsAloneKeepsNobodyWaiting) {
  turns_.Leave(kB, kBegin);
  turns_.Want(kA, v1::FORWARD, kBegin);
  const Clock::time_point bound = kBegin + StageTurns::kStageBound + milliseconds(800);
  turns_.OnTime(bound);
  const std::vector<StageTurns::Late> late = turns_.TakeLate();
  ASSERT_EQ(late.size(), 1U);
  EXPECT_TRUE(late[0].alone);
  turns_.Want(kA, v1::LOAD, bound);
  EXPECT_TRUE(turns_.TakeLate().empty());
}

TEST_F(StageTurnsTest, WhoPausesBetweenStagesIsNotWaitedForBeyondTheBound) {
  turns_.Want(kA, v1::COMMUNICATION, kBegin);
  turns_.Want(kB, v1::COMMUNICATION, kBegin);
  turns_.End(kA, kBegin);
  EXPECT_EQ(Going(turns_), std::vector{kA});  // A could be about to load
  turns_.OnTime(kBegin + StageTurns::kPauseBound);
  EXPECT_EQ(Going(turns_), std::vector{kB});
  EXPECT_FALSE(turns_.TakeLate().at(0).stage);
}

TEST_F(StageTurnsTest, JobsOnOtherGpusAreNobodysBusiness) {
  const StageKey c{3, 1};
  turns_.Join(c, 2, TurnsOf(0));
  turns_.Want(kA, v1::FORWARD, kBegin);
  turns_.Want(c, v1::FORWARD, kBegin);
  EXPECT_EQ(Going(turns_), (std::vector{kA, c}));
  turns_.Leave(kB, kBegin);
  turns_.Leave(kB, kBegin);  // again
  turns_.End(kB, kBegin);    // and has nothing to end
}

TurnsWorld RandomWorld(std::mt19937& random) {
  TurnsWorld world;
  const std::size_t members = 2 + random() % 3;
  for (std::size_t i = 0; i < members; ++i) {
    StagedJob job{.key = {i + 1, 1}, .stages = {}};
    for (const v1::Stage stage : {v1::LOAD, v1::PREPROCESS, v1::FORWARD, v1::COMMUNICATION}) {
      const bool leaves_out = (stage == v1::PREPROCESS && random() % 2 == 0) ||
                              (stage == v1::COMMUNICATION && random() % 3 == 0);
      if (!leaves_out) {
        job.stages.emplace_back(stage, milliseconds(random() % 100));
      }
    }
    world.turns.Join(job.key, 1, TurnsOf(static_cast<int>(i)));
    world.jobs.push_back(std::move(job));
  }
  return world;
}

std::string Describe(const StageSpan& span) {
  return "job " + std::to_string(span.key.first) + " " + v1::Stage_Name(span.stage);
}

TEST(StageTurnsWorldTest, NoTwoAreInOneStageAndNobodyIsMoreThanOneStageAhead) {
  std::mt19937 random(11);  // NOLINT: the same each time
  int overlaps = 0;         // of different stages: what it is all for
  for (int round = 0; round < 200; ++round) {
    TurnsWorld world = RandomWorld(random);
    world.Run(20, 0, random);
    for (std::size_t i = 0; i < world.spans.size(); ++i) {
      for (std::size_t j = i + 1; j < world.spans.size(); ++j) {
        const StageSpan& a = world.spans[i];
        const StageSpan& b = world.spans[j];
        const bool overlap = a.key != b.key && a.begin < b.end && b.begin < a.end;
        EXPECT_FALSE(overlap && a.stage == b.stage && a.stage != v1::LOAD)
            << Describe(a) << ", " << Describe(b);
        overlaps += overlap ? 1 : 0;
      }
    }
    // In the time of one stage of a member no other ends one stage and goes through the next.
    for (const StageSpan& one : world.spans) {
      if (one.stage == v1::LOAD) {
        continue;  // may go on over two slots
      }
      for (const StagedJob& other : world.jobs) {
        const auto inside =
            std::count_if(world.spans.begin(), world.spans.end(), [&](const StageSpan& span) {
              return span.key == other.key && other.key != one.key && span.begin > one.begin &&
                     span.end < one.end && span.stage != v1::LOAD;
            });
        EXPECT_LE(inside, 1) << Describe(one) << " beside job " << other.key.first;
      }
    }
  }
  EXPECT_GT(overlaps, 1000);
}

TEST_F(StageTurnsTest, WhoIsAheadHasNoSecondTurnInTheCycle) {
  const StageKey c{3, 1};
  StageTurns turns;
  turns.Join(kA, 1, TurnsOf(0));
  turns.Join(c, 1, TurnsOf(1));
  turns.Want(c, v1::COMMUNICATION, kBegin);  // in the slot in which A loads
  turns.Want(kA, v1::LOAD, kBegin);
  turns.Want(kA, v1::FORWARD, kBegin);
  EXPECT_EQ(Going(turns), (std::vector{c, kA, kA}));
  turns.Want(kA, v1::LOAD, kBegin);  // without communication: of the next iteration
  EXPECT_TRUE(Going(turns).empty());
  turns.Want(c, v1::LOAD, kBegin);
  EXPECT_EQ(Going(turns), std::vector{c});
  turns.Want(c, v1::FORWARD, kBegin);
  EXPECT_EQ(Going(turns), std::vector{c});
  turns.Leave(c, kBegin);
  EXPECT_EQ(Going(turns), std::vector{kA});
}

TEST_F(StageTurnsTest, WhoComesLaterDoesNotComputeBesideTheOneAhead) {
  const StageKey c{3, 1};
  const StageKey d{4, 1};
  StageTurns turns;
  turns.Join(kA, 1, TurnsOf(0));
  turns.Join(c, 1, TurnsOf(1));
  turns.Want(c, v1::COMMUNICATION, kBegin);
  turns.Want(kA, v1::FORWARD, kBegin);
  EXPECT_EQ(Going(turns), (std::vector{c, kA}));
  turns.Join(d, 1, TurnsOf(2));
  turns.Want(d, v1::FORWARD, kBegin);  // its slot, but A computes in it
  EXPECT_TRUE(Going(turns).empty());
  turns.End(kA, kBegin);
  EXPECT_EQ(Going(turns), std::vector{d});
}

TEST(StageTurnsWorldTest, WhoHangsOrDiesHoldsOthersUpForABoundedTime) {
  std::mt19937 random(12);  // NOLINT: the same each time
  milliseconds longest{0};
  for (int round = 0; round < 200; ++round) {
    TurnsWorld world = RandomWorld(random);
    world.Run(20, 50, random);
    longest = std::max(longest, world.longest_wait);
  }
  // Each of three others may be late once in every slot of a cycle.
  EXPECT_LE(longest, 4 * 3 * (StageTurns::kStageBound + milliseconds(900)));
  EXPECT_GT(longest, StageTurns::kStageBound);
}

// ------------------------------------------------------------------------------ of one attempt

TEST(StageDeskTest, WorkersBeginTogetherAndTheAttemptIsDoneWhenTheLastIs) {
  StageDesk desk;
  const auto kinds = [&desk] {
    std::vector<v1::StageTurn::Kind> kinds;
    for (const v1::StageTurn& turn : desk.TakeTurns()) {
      kinds.push_back(turn.kind());
    }
    return kinds;
  };
  using Kinds = std::vector<v1::StageTurn::Kind>;
  using Begin = std::vector<std::pair<StageDesk::Worker, v1::Stage>>;
  const auto at = [](int ms) { return kBegin + milliseconds(ms); };
  EXPECT_FALSE(desk.Want(1, v1::LOAD, at(0)));
  EXPECT_EQ(kinds(), Kinds{v1::StageTurn::WANTS});
  EXPECT_EQ(desk.Go(at(0)), (Begin{{1, v1::LOAD}}));
  EXPECT_TRUE(desk.Want(2, v1::LOAD, at(0)));  // the attempt is in it
  EXPECT_EQ(kinds(), Kinds{});
  EXPECT_FALSE(desk.Want(1, v1::FORWARD, at(100)));
  EXPECT_EQ(kinds(), Kinds{});
  EXPECT_FALSE(desk.Want(2, v1::FORWARD, at(200)));
  EXPECT_EQ(kinds(), (Kinds{v1::StageTurn::ENDS, v1::StageTurn::WANTS}));
  EXPECT_DOUBLE_EQ(desk.seconds().at(v1::LOAD), 0.2);
  EXPECT_EQ(desk.Go(at(200)), (Begin{{1, v1::FORWARD}, {2, v1::FORWARD}}));
  desk.End(1, at(300));
  EXPECT_EQ(kinds(), Kinds{});
  desk.End(2, at(500));
  EXPECT_EQ(kinds(), Kinds{v1::StageTurn::ENDS});
  EXPECT_DOUBLE_EQ(desk.seconds().at(v1::FORWARD), 0.3);
  desk.End(2, at(500));  // twice
  desk.Leave(1, at(500));
  desk.Leave(2, at(500));
  desk.Leave(3, at(500));
  EXPECT_EQ(kinds(), Kinds{v1::StageTurn::LEAVES});
  EXPECT_TRUE(desk.Go(at(500)).empty());
}

TEST(StageDeskTest, WhoIsAheadWaitsForThoseBehind) {
  StageDesk desk;
  using Begin = std::vector<std::pair<StageDesk::Worker, v1::Stage>>;
  (void)desk.Want(1, v1::LOAD, kBegin);
  (void)desk.Go(kBegin);
  desk.End(1, kBegin);
  EXPECT_FALSE(desk.Want(2, v1::LOAD, kBegin));  // comes when the other has loaded
  EXPECT_FALSE(desk.Want(1, v1::FORWARD, kBegin));
  EXPECT_EQ(desk.Go(kBegin), (Begin{{2, v1::LOAD}}));
  EXPECT_FALSE(desk.Want(2, v1::FORWARD, kBegin));
  EXPECT_EQ(desk.Go(kBegin), (Begin{{1, v1::FORWARD}, {2, v1::FORWARD}}));
  EXPECT_FALSE(desk.Want(2, v1::LOAD, kBegin));  // of the next iteration, without communication
  EXPECT_FALSE(desk.Want(1, v1::COMMUNICATION, kBegin));
  EXPECT_EQ(desk.Go(kBegin), (Begin{{1, v1::COMMUNICATION}}));
  EXPECT_FALSE(desk.Want(1, v1::LOAD, kBegin));
  EXPECT_EQ(desk.Go(kBegin), (Begin{{1, v1::LOAD}, {2, v1::LOAD}}));
}

}  // namespace
}  // namespace trainyard::supervisor
