// SPDX-License-Identifier: Apache-2.0
// Jobs that take turns on a node take as long as the scheduler's model of groups says.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "profile/interleave.h"
#include "support/turns_world.h"

namespace trainyard::live {
namespace {

using Clock = supervisor::StageTurns::Clock;
using std::chrono::milliseconds;

// Seconds of an iteration of the group over its last cycles: when it has settled.
double SecondsInTurns(const std::vector<StageTimes>& group, std::span<const std::uint8_t> positions,
                      std::mt19937& random) {
  TurnsWorld world;
  for (std::size_t i = 0; i < group.size(); ++i) {
    StagedJob job{.key = {i + 1, 1}, .stages = {}};
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
  for (const StageSpan& span : world.spans) {
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

TEST(GroupTimesTest, AGroupTakesAsLongAsMurisModelSays) {
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
TEST(GroupTimesTest, WhoIsInFrontComputesWhileTheOtherCommunicates) {
  std::mt19937 random(14);  // NOLINT: unused
  const StageTimes computes{.iteration = 0.27, .stages = {0.04, 0.20, 0.03}};
  const StageTimes balanced{.iteration = 0.27, .stages = {0.09, 0.09, 0.09}};
  const StageTimes talks{.iteration = 0.27, .stages = {0.03, 0.06, 0.18}};
  EXPECT_DOUBLE_EQ(SecondsInTurns({computes, balanced}, std::vector<std::uint8_t>{0, 1}, random),
                   0.33);
  EXPECT_DOUBLE_EQ(SecondsInTurns({balanced, talks}, std::vector<std::uint8_t>{0, 1}, random),
                   0.30);
}

}  // namespace
}  // namespace trainyard::live
