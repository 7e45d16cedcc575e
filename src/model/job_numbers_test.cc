// SPDX-License-Identifier: Apache-2.0
#include "model/job_numbers.h"

#include <gtest/gtest.h>

namespace trainyard::model {
namespace {

constexpr std::size_t kKnown = 9;

TEST(JobNumbersTest, JobsAreCountedFromOne) {
  const JobNumbers& numbers = JobNumbers::Counted();
  EXPECT_EQ(numbers.Of(JobAt(0)), 1U);
  EXPECT_EQ(numbers.Of(JobAt(8)), 9U);
  EXPECT_EQ(numbers.Find(9, kKnown), JobAt(8));
  EXPECT_EQ(numbers.Find(0, kKnown), std::nullopt);
  EXPECT_EQ(numbers.Find(10, kKnown), std::nullopt);
  EXPECT_EQ(numbers.ToText(), "");
}

TEST(JobNumbersTest, AfterAGapEachJobIsFoundByItsNumberAndTheGapHasNone) {
  JobNumbers numbers;
  ASSERT_TRUE(numbers.Continue(JobAt(3), 1000));
  ASSERT_TRUE(numbers.Continue(JobAt(5), 70'000));
  for (std::size_t i = 0; i < kKnown; ++i) {
    EXPECT_EQ(numbers.Of(JobAt(i)), i < 3 ? i + 1 : i < 5 ? 997 + i : 69'995 + i);
    EXPECT_EQ(numbers.Find(numbers.Of(JobAt(i)), kKnown), JobAt(i));
  }
  for (const std::uint64_t in_no_block : {0UL, 4UL, 999UL, 1002UL, 69'999UL, 70'004UL}) {
    EXPECT_EQ(numbers.Find(in_no_block, kKnown), std::nullopt) << in_no_block;
  }
  EXPECT_EQ(numbers.Find(70'000, 5), std::nullopt) << "not submitted yet";
  EXPECT_EQ(numbers.Find(1001, 4), std::nullopt);
}

TEST(JobNumbersTest, ANumberIsNotGivenAgain) {
  JobNumbers numbers;
  ASSERT_TRUE(numbers.Continue(JobAt(3), 1000));
  EXPECT_FALSE(numbers.Continue(JobAt(7), 1003)) << "that of job 6";
  EXPECT_EQ(numbers.Of(JobAt(7)), 1004U);
  EXPECT_TRUE(numbers.Continue(JobAt(3), 2000)) << "nobody was told the thousands";
  EXPECT_EQ(numbers.Of(JobAt(3)), 2000U);
  EXPECT_EQ(numbers.Find(1000, kKnown), std::nullopt);
}

TEST(JobNumbersTest, AreReadAsTheyWereWritten) {
  JobNumbers numbers;
  ASSERT_TRUE(numbers.Continue(JobAt(0), 500));
  ASSERT_TRUE(numbers.Continue(JobAt(3), 1000));
  const std::string text = numbers.ToText();
  EXPECT_EQ(text, "0:500,3:1000");
  const Result<JobNumbers> read = JobNumbers::From(text);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value().ToText(), text);
  EXPECT_TRUE(JobNumbers::From("").ok());
  for (const char* bad : {"3", "3:", ":3", "3:1000,", "3:1000,4:7", "a:1000", "3:1000 "}) {
    EXPECT_FALSE(JobNumbers::From(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace trainyard::model
