// SPDX-License-Identifier: Apache-2.0
#include "requests/slurm/slurm_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>

namespace trainyard::requests {
namespace {

using testing::HasSubstr;

// The local time of the program, as long as it lasts.
class Zone {
 public:
  explicit Zone(const char* name) {
    if (const char* const before = std::getenv("TZ"); before != nullptr) {
      before_ = before;
    }
    setenv("TZ", name, 1);
    tzset();
  }
  ~Zone() {
    if (before_) {
      setenv("TZ", before_->c_str(), 1);
    } else {
      unsetenv("TZ");
    }
    tzset();
  }
  Zone(const Zone&) = delete;
  Zone& operator=(const Zone&) = delete;

 private:
  std::optional<std::string> before_;
};

// Central Europe: 2027-03-28 has no 02:00 to 02:59; New York: 2027-03-14 likewise; a place where
// the clock is put forward at midnight.
constexpr const char* kEurope = "CET-1CEST,M3.5.0,M10.5.0/3";
constexpr const char* kNewYork = "EST5EDT,M3.2.0,M11.1.0";
constexpr const char* kMidnight = "XST4XDT,M3.5.0/0,M10.5.0/0";

std::optional<double> SecondsOfSpan(std::string_view text) { return ReadSpan(text).seconds; }
std::optional<double> Time(std::string_view text, double now) {
  return ReadTime(text, now).seconds;
}

TEST(SlurmTimeTest, SpansAreDaysHoursMinutesAndSeconds) {
  EXPECT_EQ(SecondsOfSpan("30:15"), 30 * 60 + 15);
  EXPECT_EQ(SecondsOfSpan("90:30"), 90 * 60 + 30);
  EXPECT_EQ(SecondsOfSpan("02:00:00"), 7200);
  EXPECT_EQ(SecondsOfSpan("1-12"), 36 * 3600);
  EXPECT_EQ(SecondsOfSpan("1-12:30"), 36 * 3600 + 1800);
  EXPECT_EQ(SecondsOfSpan("1-12:30:15"), 36 * 3600 + 1815);
  EXPECT_EQ(SecondsOfSpan("100:00:00"), 360000);
  EXPECT_EQ(SecondsOfSpan("4:2"), 242);
  EXPECT_EQ(SecondsOfSpan("1h30m"), 5400);
}

TEST(SlurmTimeTest, OtherTextsAreNoneAndHaveNoForm) {
  for (const char* const text :
       {"", "1:2:3:4", "a:b", "1-", "-1-2", "1-2-3", "1d-2", ":", "1:", "::"}) {
    EXPECT_FALSE(ReadSpan(text).has_form()) << text;
  }
  for (const char* const text :
       {"", "later", "now+", "now+x", "now-5", "2027", "2027-02", "2027-1-2-3", "2027-01-02T",
        "2027-01-02T10", "2027-01-02X10:00", "12:", "1:2:3:4", "2027-01-02T10:00+02", "pm",
        "noonish", "27-01-02", "2h"}) {
    EXPECT_FALSE(ReadTime(text, 1000).has_form()) << text;
  }
}

TEST(SlurmTimeTest, SpansWithPartsThatAreTooLargeSayWhy) {
  EXPECT_EQ(ReadSpan("1:99:00").why, "99 minutes; expected 0 to 59");
  EXPECT_EQ(ReadSpan("1:60").why, "60 seconds; expected 0 to 59");
  EXPECT_EQ(ReadSpan("0:00:61").why, "61 seconds; expected 0 to 59");
  EXPECT_EQ(ReadSpan("1-24").why, "24 hours; expected 0 to 23");
  EXPECT_EQ(ReadSpan("2-12:75:00").why, "75 minutes; expected 0 to 59");
}

TEST(SlurmTimeTest, NoLimitHasSeveralNames) {
  for (const char* const text :
       {"0", "00:00", "0:00:00", "0-0", "0s", "UNLIMITED", "unlimited", "Infinite", "INFINITE"}) {
    EXPECT_TRUE(IsUnlimited(text)) << text;
  }
  for (const char* const text : {"", "1", "infinity", "none", "0:01", "-0:1"}) {
    EXPECT_FALSE(IsUnlimited(text)) << text;
  }
}

TEST(SlurmTimeTest, NowAndWhatFollowsIt) {
  EXPECT_EQ(Time("now", 1000), 1000);
  EXPECT_EQ(Time("now+90", 1000), 1090);
  EXPECT_EQ(Time("now+1hour", 1000), 4600);
  EXPECT_EQ(Time("now+2hours", 1000), 8200);
  EXPECT_EQ(Time("now+30minutes", 1000), 2800);
  EXPECT_EQ(Time("now+1week", 1000), 1000 + 7 * 86400);
  EXPECT_EQ(Time("now+2h", 1000), 8200);
}

TEST(SlurmTimeTest, DaysAreLocalUnlessTheySayOtherwise) {
  const Zone zone(kEurope);
  EXPECT_EQ(Time("1970-01-02T00:00Z", 0), 86'400);
  EXPECT_EQ(Time("1970-01-02 00:00:05Z", 0), 86'405);
  EXPECT_EQ(Time("1970-01-02", 0), 86'400 - 3600);
  EXPECT_EQ(Time("2028-02-29T12:00:00Z", 0), 1'835'438'400);
  EXPECT_EQ(Time("2027-07-01T12:00", 0), *Time("2027-07-01T10:00Z", 0));
}

TEST(SlurmTimeTest, DaysAndHoursThatDoNotExistAreRefused) {
  EXPECT_EQ(ReadTime("2027-02-30T00:00", 0).why, "there is no day 30 in 2027-02, which has 28");
  EXPECT_EQ(ReadTime("2027-02-29", 0).why, "there is no day 29 in 2027-02, which has 28");
  EXPECT_EQ(ReadTime("2027-04-31T10:00:00", 0).why, "there is no day 31 in 2027-04, which has 30");
  EXPECT_EQ(ReadTime("2027-13-01T00:00Z", 0).why, "there is no month 13");
  EXPECT_EQ(ReadTime("2027-00-10", 0).why, "there is no month 0");
  EXPECT_EQ(ReadTime("2027-01-00", 0).why, "there is no day 0 in 2027-01, which has 31");
  EXPECT_EQ(ReadTime("2027-01-01T24:00", 0).why, "there is no hour 24; expected 00:00 to 23:59");
  EXPECT_EQ(ReadTime("2027-01-01T10:60", 0).why, "there is no minute 60; expected 0 to 59");
  EXPECT_EQ(ReadTime("2027-01-01T10:00:60Z", 0).why, "there is no second 60; expected 0 to 59");
  EXPECT_EQ(ReadTime("24:00", 0).why, "there is no hour 24; expected 00:00 to 23:59");
  EXPECT_EQ(ReadTime("25:00", 0).why, "there is no hour 25; expected 00:00 to 23:59");
  EXPECT_EQ(ReadTime("12:60", 0).why, "there is no minute 60; expected 0 to 59");
  EXPECT_EQ(ReadTime("13:00pm", 0).why, "there is no hour 13 with am or pm; expected 1 to 12");
  EXPECT_EQ(ReadTime("0:30am", 0).why, "there is no hour 0 with am or pm; expected 1 to 12");
}

TEST(SlurmTimeTest, TheHourThatTheClockSkipsIsRefused) {
  {
    const Zone zone(kEurope);
    EXPECT_EQ(ReadTime("2027-03-28T02:30", 0).why,
              "02:30 does not exist on 2027-03-28: the clock is put forward past it");
    EXPECT_EQ(Time("2027-03-28T01:59", 0), *Time("2027-03-28T00:59Z", 0));
    EXPECT_EQ(Time("2027-03-28T03:00", 0), *Time("2027-03-28T01:00Z", 0));
    EXPECT_TRUE(Time("2027-10-31T02:30", 0)) << "it comes twice";
    EXPECT_TRUE(Time("2027-03-28T02:30Z", 0)) << "no clock is put forward there";
    // As the next time of day: at 01:00 of that day, and in the evening before it.
    const double before = *Time("2027-03-28T01:00", 0);
    EXPECT_THAT(ReadTime("02:30", before).why, HasSubstr("does not exist on 2027-03-28"));
    EXPECT_THAT(ReadTime("2:00", before - 6 * 3600).why, HasSubstr("does not exist on 2027-03-28"));
    EXPECT_EQ(Time("02:30", before + 2 * 3600), *Time("2027-03-29T02:30", 0));
  }
  const Zone zone(kNewYork);
  EXPECT_THAT(ReadTime("2027-03-14 02:00:00", 0).why, HasSubstr("does not exist"));
  EXPECT_TRUE(Time("2027-03-28T02:30", 0));
}

TEST(SlurmTimeTest, ADayWithoutMidnightBeginsAfterIt) {
  const Zone zone(kMidnight);
  EXPECT_THAT(ReadTime("2027-03-28T00:30", 0).why, HasSubstr("does not exist"));
  EXPECT_EQ(Time("2027-03-28", 0), *Time("2027-03-28T01:00", 0));
  EXPECT_EQ(Time("tomorrow", *Time("2027-03-27T12:00", 0)), *Time("2027-03-28T01:00", 0));
}

TEST(SlurmTimeTest, ATimeOfDayIsTheNextOne) {
  const Zone zone(kEurope);
  const double noon = *Time("2026-12-31T12:00", 0);
  EXPECT_EQ(Time("18:00", noon), *Time("2026-12-31T18:00", 0));
  EXPECT_EQ(Time("6:00pm", noon), Time("18:00", noon));
  EXPECT_EQ(Time("6:00 PM", noon), Time("18:00", noon));
  EXPECT_EQ(Time("12:30am", noon), *Time("2027-01-01T00:30", 0));
  EXPECT_EQ(Time("12:00", noon), *Time("2027-01-01T12:00", 0)) << "not now";
  EXPECT_EQ(Time("noon", noon), Time("12:00", noon));
  EXPECT_EQ(Time("08:15:30", noon), *Time("2027-01-01T08:15:30", 0));
  EXPECT_EQ(Time("elevenses", noon), *Time("2027-01-01T11:00", 0));
  EXPECT_EQ(Time("fika", noon), *Time("2026-12-31T15:00", 0));
  EXPECT_EQ(Time("teatime", noon), *Time("2026-12-31T16:00", 0));
  EXPECT_EQ(Time("tomorrow", noon), *Time("2027-01-01", 0));
  EXPECT_EQ(Time("midnight", noon), *Time("2027-01-01", 0));
}

}  // namespace
}  // namespace trainyard::requests
