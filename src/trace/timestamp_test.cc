// SPDX-License-Identifier: Apache-2.0
#include "trace/timestamp.h"

#include <gtest/gtest.h>

#include <array>

namespace trainyard::trace {
namespace {

// Seconds since 1970, or -1.
double At(std::string_view text) {
  const auto stamp = ParseTimestamp(text);
  return stamp ? Seconds(stamp->at) : -1;
}

TEST(TimestampTest, ReadsTimesWithAndWithoutZone) {
  EXPECT_EQ(At("1970-01-01 00:00:00"), 0);
  EXPECT_EQ(At("2020-04-01 00:00:05"), 1585699205);
  EXPECT_EQ(At("2020-04-01T00:00:05"), 1585699205);
  EXPECT_EQ(At("2020-04-01 08:00:05+08:00"), 1585699205);
  EXPECT_EQ(At("2020-04-01 08:00:05+0800"), 1585699205);
  EXPECT_EQ(At("2020-04-01 08:00:05+08"), 1585699205);
  EXPECT_EQ(At("2020-03-31T19:30:05-04:30"), 1585699205);
  EXPECT_EQ(At("2020-04-01T00:00:05Z"), 1585699205);
  EXPECT_EQ(At("2020-04-01 00:00:05.25"), 1585699205.25);
  EXPECT_EQ(At("2020-04-01 00:00:05.0000019"), 1585699205.000001);
  EXPECT_FALSE(ParseTimestamp("2020-04-01 00:00:05")->has_zone);
  EXPECT_TRUE(ParseTimestamp("2020-04-01 00:00:05+00:00")->has_zone);
}

TEST(TimestampTest, KnowsTheCalendar) {
  EXPECT_EQ(At("2020-02-29 00:00:00") - At("2020-02-28 00:00:00"), 86400);
  EXPECT_EQ(At("2020-03-01 00:00:00") - At("2020-02-28 23:59:59"), 86401);
  EXPECT_EQ(At("2018-01-01 00:00:00") - At("2017-12-31 23:59:59"), 1);
  for (const char* const none :
       {"2019-02-29 00:00:00", "2020-13-01 00:00:00", "2020-00-01 00:00:00", "2020-04-31 00:00:00",
        "2020-04-01 24:00:00", "2020-04-01 00:60:00", "2020-04-01 00:00:60"}) {
    EXPECT_EQ(At(none), -1) << none;
  }
}

TEST(TimestampTest, RefusesWhatIsNoTimestamp) {
  for (const char* const bad : {"",
                                "None",
                                "2020-04-01",
                                "2020-04-01 ",
                                "2020-4-1 00:00:00",
                                "20-04-01 00:00:00",
                                "2020-04-01 0:00:00",
                                "2020-04-01 00:00",
                                "2020-04-01 00:00:00 ",
                                "2020-04-01 00:00:00.",
                                " 2020-04-01 00:00:00",
                                "2020-04-01 00:00:00+8",
                                "2020-04-01 00:00:00+08:",
                                "2020-04-01 00:00:00+08:0",
                                "2020-04-01 00:00:00 PDT",
                                "2020-04-01 00:00:00+08:00x",
                                "2020-04--1 00:00:00",
                                "-020-04-01 00:00:00",
                                "1585699205",
                                "2020/04/01 00:00:00"}) {
    EXPECT_EQ(At(bad), -1) << bad;
  }
}

TEST(TimestampTest, IsWrittenAsItIsRead) {
  for (const char* const text : {"2017-08-07 12:00:01", "2023-03-01 00:18:22+00:00",
                                 "2020-02-29 23:59:59.000250", "1969-12-31 23:59:59"}) {
    EXPECT_EQ(TimestampText(*ParseTimestamp(text)), text);
  }
}

TEST(TimestampReaderTest, MissingOnesAreNoError) {
  const std::string path = "t.csv";
  const std::array<std::string, 1> header{"at"};
  TimestampReader reader;
  for (const std::string_view text : {"", "None", "null", "NaN", "NaT"}) {
    const auto read = reader.Read(io::CsvRow(path, 2, header, {&text, 1}), 0);
    ASSERT_TRUE(read.ok());
    EXPECT_FALSE(read.value().has_value());
  }
}

TEST(TimestampReaderTest, ZonesMustBeEverywhereOrNowhere) {
  const std::string path = "t.csv";
  const std::array<std::string, 1> header{"at"};
  TimestampReader reader;
  const auto read = [&](std::int64_t line, std::string_view text) {
    const auto at = reader.Read(io::CsvRow(path, line, header, {&text, 1}), 0);
    return at.ok() ? "" : at.error().message;
  };
  EXPECT_EQ(read(2, "2020-04-01 00:00:05+08:00"), "");
  EXPECT_EQ(read(3, "2020-04-01 00:00:05Z"), "");
  EXPECT_EQ(read(4, "2020-04-01 00:00:05"),
            "t.csv:4: column 'at' is '2020-04-01 00:00:05'; expected a time with a zone, as in "
            "line 2");
  EXPECT_EQ(read(5, "yesterday"),
            "t.csv:5: column 'at' is 'yesterday'; expected a time such as 2020-04-01 00:00:05, "
            "with a zone or without");
  EXPECT_EQ(reader.Text(AtSeconds(0)), "1970-01-01 00:00:00+00:00");
}

}  // namespace
}  // namespace trainyard::trace
