// SPDX-License-Identifier: Apache-2.0
#include "trace/job_times.h"

#include <gtest/gtest.h>

#include <memory>

namespace trainyard::trace {
namespace {

TEST(JobTimesTest, ReadsClocks) {
  EXPECT_EQ(ParseClock("02:00:00"), 7200);
  EXPECT_EQ(ParseClock("365-00:00:00"), 31'536'000);
  EXPECT_EQ(ParseClock("1-02:03:04.5"), 93'784.5);
  EXPECT_EQ(ParseClock("1 day, 2:00:00"), 93'600);
  EXPECT_EQ(ParseClock("0 days 00:00:10"), 10);
  EXPECT_EQ(ParseClock("10:30"), std::nullopt);
  EXPECT_EQ(ParseClock("10:30", true), 630);
  EXPECT_EQ(ParseClock("10:30.25", true), 630.25);
  for (const char* const bad : {"", "5", "1:60:00", "1:00:60", "1:2:3:4", "-1:00:00", "1-", "1-5",
                                "a-1:00:00", "1:0x:00", "1.5:00:00", "2024-03-01 10:00:00"}) {
    EXPECT_EQ(ParseClock(bad), std::nullopt) << bad;
  }
}

TEST(JobTimesTest, ReadsSpansWithUnits) {
  EXPECT_EQ(ParseSpan("10m"), 600);
  EXPECT_EQ(ParseSpan("1h30m"), 5400);
  EXPECT_EQ(ParseSpan("01:00:00"), 3600);
  EXPECT_EQ(ParseSpan("10"), std::nullopt);  // a number has no unit of its own
  EXPECT_EQ(ParseSpan("10 minutes"), std::nullopt);
}

TEST(JobTimesTest, AllTimesOnTheClockAreShifted) {
  JobSpec job{.submit = AtSeconds(100), .handover = AtSeconds(110), .deadline = AtSeconds(200)};
  JobTraits traits{.begin = AtSeconds(150)};
  traits.deadlines = {{AtSeconds(200), 1}};
  traits.time_limit = FromSeconds(60);
  job.traits = std::make_shared<const JobTraits>(traits);
  CountFrom(AtSeconds(100), job);
  EXPECT_EQ(job.submit, AtSeconds(0));
  EXPECT_EQ(job.handover, AtSeconds(10));
  EXPECT_EQ(job.deadline, AtSeconds(100));
  EXPECT_EQ(job.traits->begin, AtSeconds(50));
  EXPECT_EQ(job.traits->deadlines.at(0).at, AtSeconds(100));
  EXPECT_EQ(job.traits->time_limit, FromSeconds(60));
}

}  // namespace
}  // namespace trainyard::trace
