// SPDX-License-Identifier: Apache-2.0
// Jobs that take turns in a pretended world with a clock of its own. What must hold is looked at
// from outside: from when each stage began and ended.
#include "supervisor/job/stage_turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <span>
#include <string>

#include "profile/interleave.h"
#include "supervisor/job/stage_desk.h"

namespace trainyard::supervisor {
namespace {

using Clock = StageTurns::Clock;
using std::chrono::milliseconds;
using Key = AttemptKey;

constexpr Clock::time_point kBegin{};

v1::Turns TurnsOf(int position, double iteration_s = 0.4) {
  v1::Turns turns;
  turns.set_position(position);
  turns.set_iteration_s(iteration_s);
  return turns;
}

std::vector<Key> Going(StageTurns& turns) {
  std::vector<Key> keys;
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
  const Key kA{1, 1};
  const Key kB{2, 1};
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
  std::vector<Key> both = Going(turns_);
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
  const Key c{3, 1};
  turns_.Join(c, 2, TurnsOf(0));
  turns_.Want(kA, v1::FORWARD, kBegin);
  turns_.Want(c, v1::FORWARD, kBegin);
  EXPECT_EQ(Going(turns_), (std::vector{kA, c}));
  turns_.Leave(kB, kBegin);
  turns_.Leave(kB, kBegin);  // again
  turns_.End(kB, kBegin);    // and has nothing to end
}

// A job in a pretended world: goes through its stages, each of its length, and hangs or dies at
// times.
struct Job {
  Key key;
  std::vector<std::pair<v1::Stage, milliseconds>> stages;
  std::size_t next = 0;  // the stage that it wants or is in
  std::size_t done = 0;  // iterations
  bool in_stage = false;
  bool dead = false;
  Clock::time_point acts_at = kBegin;
  Clock::time_point asked{};
};

struct Span {
  Key key;
  v1::Stage stage;
  Clock::time_point begin;
  Clock::time_point end;
};

struct World {
  StageTurns turns;
  std::vector<Job> jobs;
  std::vector<Span> spans;
  milliseconds longest_wait{0};

  void Begin(Clock::time_point now) {
    for (const StageTurns::Go& go : turns.TakeGoes()) {
      Job& job =
          *std::find_if(jobs.begin(), jobs.end(), [&go](const Job& j) { return j.key == go.key; });
      ASSERT_FALSE(job.in_stage);
      ASSERT_EQ(job.stages[job.next].first, go.stage);
      longest_wait =
          std::max(longest_wait, std::chrono::duration_cast<milliseconds>(now - job.asked));
      job.in_stage = true;
      job.acts_at = now + job.stages[job.next].second;
      spans.push_back({job.key, go.stage, now, job.acts_at});
    }
  }
  // `misbehave`: hangs for 20 s, or dies, once in so many steps; 0: never.
  void Run(std::size_t iterations, int misbehave, std::mt19937& random) {
    const auto busy = [iterations](const Job& job) { return !job.dead && job.done < iterations; };
    for (int step = 0; step < 100'000 && std::any_of(jobs.begin(), jobs.end(), busy); ++step) {
      Clock::time_point now = turns.next_due().value_or(Clock::time_point::max());
      for (const Job& job : jobs) {
        now = busy(job) ? std::min(now, job.acts_at) : now;
      }
      ASSERT_NE(now, Clock::time_point::max()) << "all wait for ever";
      turns.OnTime(now);
      Begin(now);
      for (Job& job : jobs) {
        if (busy(job) && job.acts_at <= now) {
          Act(job, iterations, misbehave, now, random);
          Begin(now);
        }
      }
    }
    EXPECT_FALSE(std::any_of(jobs.begin(), jobs.end(), busy));
  }
  void Act(Job& job, std::size_t iterations, int misbehave, Clock::time_point now,
           std::mt19937& random) {
    if (misbehave > 0 && random() % static_cast<unsigned>(misbehave) == 0) {
      if (random() % 4 == 0) {
        job.dead = true;
        turns.Leave(job.key, now);
      } else {
        job.acts_at = now + std::chrono::seconds(20);
      }
      return;
    }
    if (job.in_stage) {
      turns.End(job.key, now);
      job.in_stage = false;
      job.next = (job.next + 1) % job.stages.size();
      job.done += job.next == 0 ? 1 : 0;
    }
    if (job.done == iterations) {
      turns.Leave(job.key, now);
      return;
    }
    job.asked = now;
    job.acts_at = Clock::time_point::max();
    turns.Want(job.key, job.stages[job.next].first, now);
  }
};

World RandomWorld(std::mt19937& random) {
  World world;
  const std::size_t members = 2 + random() % 3;
  for (std::size_t i = 0; i < members; ++i) {
    Job job{.key = {i + 1, 1}, .stages = {}};
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

std::string Describe(const Span& span) {
  return "job " + std::to_string(span.key.first) + " " + v1::Stage_Name(span.stage);
}

TEST(StageTurnsWorldTest, NoTwoAreInOneStageAndNobodyIsMoreThanOneStageAhead) {
  std::mt19937 random(11);  // NOLINT: the same each time
  int overlaps = 0;         // of different stages: what it is all for
  for (int round = 0; round < 200; ++round) {
    World world = RandomWorld(random);
    world.Run(20, 0, random);
    for (std::size_t i = 0; i < world.spans.size(); ++i) {
      for (std::size_t j = i + 1; j < world.spans.size(); ++j) {
        const Span& a = world.spans[i];
        const Span& b = world.spans[j];
        const bool overlap = a.key != b.key && a.begin < b.end && b.begin < a.end;
        EXPECT_FALSE(overlap && a.stage == b.stage && a.stage != v1::LOAD)
            << Describe(a) << ", " << Describe(b);
        overlaps += overlap ? 1 : 0;
      }
    }
    // In the time of one stage of a member no other ends one stage and goes through the next.
    for (const Span& one : world.spans) {
      if (one.stage == v1::LOAD) {
        continue;  // may go on over two slots
      }
      for (const Job& other : world.jobs) {
        const auto inside =
            std::count_if(world.spans.begin(), world.spans.end(), [&](const Span& span) {
              return span.key == other.key && other.key != one.key && span.begin > one.begin &&
                     span.end < one.end && span.stage != v1::LOAD;
            });
        EXPECT_LE(inside, 1) << Describe(one) << " beside job " << other.key.first;
      }
    }
  }
  EXPECT_GT(overlaps, 1000);
}

// ------------------------------------------------------------------------- and Muri's group times

// Seconds of an iteration of the group over its last cycles: when it has settled.
double SecondsInTurns(const std::vector<StageTimes>& group, std::span<const std::uint8_t> positions,
                      std::mt19937& random) {
  World world;
  for (std::size_t i = 0; i < group.size(); ++i) {
    Job job{.key = {i + 1, 1}, .stages = {}};
    const std::array kinds{v1::LOAD, v1::FORWARD, v1::COMMUNICATION};
    for (std::size_t stage = 0; stage < kinds.size(); ++stage) {
      if (group[i].stages[stage] > 0) {
        job.stages.emplace_back(kinds.at(stage),
                                milliseconds(std::lround(1000 * group[i].stages[stage])));
      }
    }
    world.turns.Join(job.key, 1, TurnsOf(positions[i]));
    world.jobs.push_back(std::move(job));
  }
  constexpr std::size_t kIterations = 60;
  constexpr std::size_t kCounted = 24;  // a multiple of all periods seen
  world.Run(kIterations, 0, random);
  std::vector<Clock::time_point> begins;  // of the first member's forward stages
  for (const Span& span : world.spans) {
    if (span.key == world.jobs.front().key && span.stage == v1::FORWARD) {
      begins.push_back(span.begin);
    }
  }
  const auto last = begins.end() - 4;  // before the others leave
  return std::chrono::duration<double>(*last - *(last - kCounted)).count() / kCounted;
}

// Stages of 1 to 200 ms, some jobs without communication.
std::vector<StageTimes> RandomGroup(std::mt19937& random) {
  std::vector<StageTimes> group(2 + random() % 3);
  for (StageTimes& job : group) {
    const auto seconds = [&random] { return static_cast<double>(1 + random() % 200) / 1000; };
    job.stages = {seconds(), seconds(), random() % 4 == 0 ? 0 : seconds()};
    job.iteration = job.stages[0] + job.stages[1] + job.stages[2];
  }
  return group;
}

TEST(StageTurnsWorldTest, AGroupTakesAsLongAsMurisModelSays) {
  std::mt19937 random(13);  // NOLINT: the same each time
  for (int round = 0; round < 1000; ++round) {
    const std::vector<StageTimes> group = RandomGroup(random);
    std::vector<const StageTimes*> members;
    std::string text;
    for (const StageTimes& job : group) {
      members.push_back(&job);
      text += testing::PrintToString(job.stages) + " ";
    }
    const profile::Interleaving expected = profile::Interleave(members, profile::StageOrder::kBest);
    EXPECT_NEAR(SecondsInTurns(group, expected.positions, random) / expected.seconds, 1, 1e-3)
        << "round " << round << ": " << text;
  }
}

// The two pairs of which the one in front must not wait for the end of the other's communication.
TEST(StageTurnsWorldTest, WhoIsInFrontComputesWhileTheOtherCommunicates) {
  std::mt19937 random(14);  // NOLINT: unused
  const StageTimes computes{.iteration = 0.27, .stages = {0.04, 0.20, 0.03}};
  const StageTimes balanced{.iteration = 0.27, .stages = {0.09, 0.09, 0.09}};
  const StageTimes talks{.iteration = 0.27, .stages = {0.03, 0.06, 0.18}};
  EXPECT_DOUBLE_EQ(SecondsInTurns({computes, balanced}, std::vector<std::uint8_t>{0, 1}, random),
                   0.33);
  EXPECT_DOUBLE_EQ(SecondsInTurns({balanced, talks}, std::vector<std::uint8_t>{0, 1}, random),
                   0.30);
}

TEST_F(StageTurnsTest, WhoIsAheadHasNoSecondTurnInTheCycle) {
  const Key c{3, 1};
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

TEST(StageTurnsWorldTest, WhoHangsOrDiesHoldsOthersUpForABoundedTime) {
  std::mt19937 random(12);  // NOLINT: the same each time
  milliseconds longest{0};
  for (int round = 0; round < 200; ++round) {
    World world = RandomWorld(random);
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
