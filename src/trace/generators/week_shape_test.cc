// SPDX-License-Identifier: Apache-2.0
#include "trace/generators/week_shape.h"

#include <gtest/gtest.h>

namespace trainyard::trace {
namespace {

constexpr double kHour = 3600;
constexpr double kDay = 24 * kHour;

TEST(WeekShapeTest, AnEvenWeekChangesNothing) {
  const WeekShape week(WeekOptions{});
  for (const double t : {0.0, 1.5, 12'345.0, 604'800.0, 9e6}) {
    EXPECT_NEAR(week.Evened(t), t, 1e-6);
    EXPECT_NEAR(week.Clock(t), t, 1e-6);
    EXPECT_DOUBLE_EQ(week.RateAt(t), 1);
  }
}

TEST(WeekShapeTest, TheClockIsTheInverse) {
  const WeekShape week({.day_swing = 0.9, .peak_hour = 14, .weekend_factor = 0.3});
  for (double t = 0; t < 15 * kDay; t += 1234.5) {
    EXPECT_NEAR(week.Clock(week.Evened(t)), t, 1e-6);
  }
}

TEST(WeekShapeTest, AWeekHasAsManySubmissionsAsAnEvenOne) {
  const WeekShape week({.day_swing = 0.9, .peak_hour = 14, .weekend_factor = 0.3});
  EXPECT_NEAR(week.Evened(7 * kDay), 7 * kDay, 1e-6);
}

TEST(WeekShapeTest, PeaksAtItsHourAndRestsAtTheWeekend) {
  const WeekShape week({.day_swing = 0.5, .peak_hour = 14.5, .weekend_factor = 0.25});
  EXPECT_NEAR(week.RateAt(14.5 * kHour) / week.RateAt(2.5 * kHour), 1.5 / 0.5, 1e-9);
  EXPECT_NEAR(week.RateAt(5 * kDay) / week.RateAt(0), 0.25, 1e-9);
  EXPECT_NEAR(week.RateAt(7 * kDay), week.RateAt(0), 1e-9);
}

TEST(WeekShapeTest, NothingIsSubmittedWhereTheRateIsZero) {
  const WeekShape week({.day_swing = 0, .weekend_factor = 0});
  EXPECT_DOUBLE_EQ(week.RateAt(6 * kDay), 0);
  EXPECT_NEAR(week.Clock(week.Evened(5 * kDay) - 1), 5 * kDay - 1 / 1.4, 1e-6);
  EXPECT_NEAR(week.Clock(7 * kDay + 1.4), 7 * kDay + 1, 1e-6);
}

}  // namespace
}  // namespace trainyard::trace
