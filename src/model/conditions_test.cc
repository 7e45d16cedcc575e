// SPDX-License-Identifier: Apache-2.0
#include "model/conditions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace trainyard::model {
namespace {

using Indices = std::vector<std::int64_t>;

Indices Of(std::string_view text) {
  const Result<ArrayTasks> tasks = ParseArray(text);
  return tasks.ok() ? tasks.value().indices : Indices{};
}

TEST(ArrayTest, IndicesAreASet) {
  EXPECT_EQ(Of("1,1,1"), (Indices{1}));
  EXPECT_EQ(Of("3-5,4-6,0"), (Indices{0, 3, 4, 5, 6}));
  EXPECT_EQ(Of("0-8:4,2-6:2%3"), (Indices{0, 2, 4, 6, 8}));
  EXPECT_EQ(Of("9-9,8"), (Indices{8, 9}));
  EXPECT_EQ(ParseArray("0-8:4,2-6:2%3").value().at_once, 3);
}

TEST(ArrayTest, RepeatedRangesCountOnce) {
  Indices all(kMostTasks);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(Of("0-9999,0-9999"), all);
  EXPECT_EQ(Of("5000-9999,0-9999,0-4999,7"), all);
  std::string often = "0-9999";
  for (int i = 0; i < 100; ++i) {
    often += ",0-9999";
  }
  EXPECT_EQ(Of(often), all);
  EXPECT_EQ(Of("0-4000000:1000").size(), 4001U);
}

TEST(ArrayTest, TooManyTasksAndWhatIsNoRangeAreRefused) {
  for (const char* const text : {"0-10000", "0-9999,10000", "0-4999,3000000-3005000", "0-4000000",
                                 "4000001", "3-1", "-1", "1-", "1:2", "1-5:0", "a", "", ",", "1,",
                                 "1%0", "1%", "1-5:99999999999999999999", "%3", "1--2"}) {
    EXPECT_FALSE(ParseArray(text).ok()) << text;
  }
  EXPECT_EQ(Of("1-5:9223372036854775807"), (Indices{1})) << "no overflow";
}

TEST(DependencyTest, AStartMayBeWaitedForWithMinutes) {
  const Result<Dependency> dependency = ParseDependency("after:12+5:13_4,afterok:1");
  ASSERT_TRUE(dependency.ok());
  const Condition& after = dependency.value().conditions.front();
  EXPECT_EQ(after.jobs, (std::vector<std::string>{"12", "13_4"}));
  EXPECT_EQ(after.minutes, (std::vector<int>{5, 0}));
  EXPECT_EQ(TextOf(dependency.value()), "after:12+5:13_4,afterok:1");
  for (const char* const text : {"after", "after:", "after:+5", "after:1+", "after:1+x",
                                 "after:1+-1", "after:1+99999999", "aftercorr", "aftercorr:"}) {
    EXPECT_FALSE(ParseDependency(text).ok()) << text;
  }
}

TEST(DependencyTest, TasksMayWaitForThoseOfTheirIndices) {
  const Result<Dependency> dependency = ParseDependency("aftercorr:12:13,afterok:1");
  ASSERT_TRUE(dependency.ok());
  EXPECT_EQ(dependency.value().conditions.front().kind, Condition::Kind::kAfterCorr);
  EXPECT_EQ(TextOf(dependency.value()), "aftercorr:12:13,afterok:1");
  EXPECT_THAT(
      ParseDependency("afterburstbuffer:1").error().message,
      testing::HasSubstr("afternotok:JOB, aftercorr:JOB, after:JOB[+MINUTES] or singleton"));
}

}  // namespace
}  // namespace trainyard::model
