// SPDX-License-Identifier: Apache-2.0
#include "cli/live/slurm_time.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace trainyard::cli {
namespace {

TEST(SlurmTimeTest, SpansAreDaysHoursMinutesAndSeconds) {
  EXPECT_EQ(SlurmSpan("30:15"), 30 * 60 + 15);
  EXPECT_EQ(SlurmSpan("02:00:00"), 7200);
  EXPECT_EQ(SlurmSpan("1-12"), 36 * 3600);
  EXPECT_EQ(SlurmSpan("1-12:30"), 36 * 3600 + 1800);
  EXPECT_EQ(SlurmSpan("1-12:30:15"), 36 * 3600 + 1815);
  EXPECT_EQ(SlurmSpan("100:00:00"), 360000);
}

TEST(SlurmTimeTest, OtherTextsAreNone) {
  for (const char* const text : {"", "90", "2h", "1:2:3:4", "a:b", "1-", "-1", "1:60", "1-2-3"}) {
    EXPECT_FALSE(SlurmSpan(text)) << text;
  }
  for (const char* const text : {"", "later", "now+", "now+x", "now-5", "25:00", "12:60"}) {
    EXPECT_FALSE(SlurmTime(text, 1000)) << text;
  }
}

TEST(SlurmTimeTest, NowAndWhatFollowsIt) {
  EXPECT_EQ(SlurmTime("now", 1000), 1000);
  EXPECT_EQ(SlurmTime("now+90", 1000), 1090);
  EXPECT_EQ(SlurmTime("now+1hour", 1000), 4600);
  EXPECT_EQ(SlurmTime("now+2hours", 1000), 8200);
  EXPECT_EQ(SlurmTime("now+30minutes", 1000), 2800);
  EXPECT_EQ(SlurmTime("now+1week", 1000), 1000 + 7 * 86400);
  EXPECT_EQ(SlurmTime("now+2h", 1000), 8200);
}

TEST(SlurmTimeTest, ATimeOfDayIsTheNextOne) {
  const auto hour_of = [](double at) {
    const auto whole = static_cast<std::time_t>(at);
    std::tm parts{};
    localtime_r(&whole, &parts);
    return parts.tm_hour;
  };
  for (const double now : {1e9, 1e9 + 30'000, 1e9 + 60'000}) {
    const std::optional<double> six = SlurmTime("18:00", now);
    ASSERT_TRUE(six);
    EXPECT_GT(*six, now);
    EXPECT_LE(*six, now + 90'000);  // a day may have 25 hours
    EXPECT_EQ(hour_of(*six), 18);
    EXPECT_EQ(hour_of(SlurmTime("noon", now).value_or(0)), 12);
    EXPECT_EQ(hour_of(SlurmTime("tomorrow", now).value_or(0)), 0);
  }
}

}  // namespace
}  // namespace trainyard::cli
