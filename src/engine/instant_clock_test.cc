// SPDX-License-Identifier: Apache-2.0
#include "engine/instant_clock.h"

#include <gtest/gtest.h>

namespace trainyard::engine {
namespace {

model::ClockRules ClockOf(model::ClockRules::Mode mode, double length = 0) {
  return {.mode = mode, .length = FromSeconds(length)};
}

TEST(InstantClockTest, EveryEventIsDecidedAtItsTime) {
  InstantClock clock(ClockOf(model::ClockRules::Mode::kEveryEvent, 60));
  clock.Decided(AtSeconds(10));
  EXPECT_EQ(clock.InstantFor(AtSeconds(10), false), AtSeconds(10));
  EXPECT_EQ(clock.InstantFor(AtSeconds(11), false), AtSeconds(11));
}

TEST(InstantClockTest, SpacingDoesNotDelayTheFirstDecision) {
  const InstantClock clock(ClockOf(model::ClockRules::Mode::kSpacing, 60));
  EXPECT_EQ(clock.InstantFor(AtSeconds(7), false), AtSeconds(7));
}

TEST(InstantClockTest, SpacingDelaysWhatComesTooSoon) {
  InstantClock clock(ClockOf(model::ClockRules::Mode::kSpacing, 60));
  clock.Decided(AtSeconds(100));
  EXPECT_EQ(clock.InstantFor(AtSeconds(101), false), AtSeconds(160));
  EXPECT_EQ(clock.InstantFor(AtSeconds(160), false), AtSeconds(160));
  EXPECT_EQ(clock.InstantFor(AtSeconds(161), false), AtSeconds(161));
}

TEST(InstantClockTest, SpacingDoesNotDelayALoneFact) {
  InstantClock clock(ClockOf(model::ClockRules::Mode::kSpacing, 60));
  clock.Decided(AtSeconds(100));
  EXPECT_EQ(clock.InstantFor(AtSeconds(101), true), AtSeconds(101));
}

TEST(InstantClockTest, RoundsComeAtMultiplesOfTheirLength) {
  model::ClockRules rules = ClockOf(model::ClockRules::Mode::kRounds, 300);
  rules.anchor = AtSeconds(0);
  const InstantClock clock(rules);
  EXPECT_EQ(clock.InstantFor(AtSeconds(10), false), AtSeconds(300));
  EXPECT_EQ(clock.InstantFor(AtSeconds(300), false), AtSeconds(300));
  EXPECT_EQ(clock.InstantFor(AtSeconds(301), true), AtSeconds(600));
}

TEST(InstantClockTest, ARoundIsDecidedOnce) {
  model::ClockRules rules = ClockOf(model::ClockRules::Mode::kRounds, 300);
  rules.anchor = AtSeconds(0);
  InstantClock clock(rules);
  clock.Decided(AtSeconds(300));
  EXPECT_EQ(clock.InstantFor(AtSeconds(300), false), AtSeconds(600));
}

TEST(InstantClockTest, RoundsAreAnchoredAtTheFirstSubmit) {
  InstantClock clock(ClockOf(model::ClockRules::Mode::kRounds, 300));
  clock.Anchor(AtSeconds(17));
  clock.Anchor(AtSeconds(99));
  EXPECT_EQ(clock.InstantFor(AtSeconds(17), false), AtSeconds(17));
  EXPECT_EQ(clock.InstantFor(AtSeconds(18), false), AtSeconds(317));
}

TEST(InstantClockTest, AnAnchorOfItsOwnStays) {
  model::ClockRules rules = ClockOf(model::ClockRules::Mode::kRounds, 300);
  rules.anchor = AtSeconds(0);
  InstantClock clock(rules);
  clock.Anchor(AtSeconds(17));
  EXPECT_EQ(clock.InstantFor(AtSeconds(17), false), AtSeconds(300));
}

TEST(InstantClockTest, RemembersTheLastDecision) {
  InstantClock clock(ClockOf(model::ClockRules::Mode::kEveryEvent));
  EXPECT_EQ(clock.last(), std::nullopt);
  clock.Decided(AtSeconds(5));
  clock.Decided(AtSeconds(5));
  EXPECT_EQ(clock.last(), AtSeconds(5));
}

TEST(InstantClockDeathTest, DecisionsDoNotGoBack) {
  InstantClock clock(ClockOf(model::ClockRules::Mode::kEveryEvent));
  clock.Decided(AtSeconds(5));
  EXPECT_DEATH(clock.Decided(AtSeconds(4)), "CHECK");
}

}  // namespace
}  // namespace trainyard::engine
