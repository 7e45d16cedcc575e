// SPDX-License-Identifier: Apache-2.0
#include "base/decimal.h"

#include <gtest/gtest.h>

#include <limits>

namespace trainyard::base {
namespace {

std::string SecondsText(std::int64_t micros) {
  std::string text;
  AppendSeconds(Duration{micros}, text);
  return text;
}

std::string MillionthsText(double value) {
  std::string text;
  AppendMillionths(value, text);
  return text;
}

TEST(AppendSecondsTest, WholeSecondsHaveNoPoint) {
  EXPECT_EQ(SecondsText(0), "0");
  EXPECT_EQ(SecondsText(12'000'000), "12");
  EXPECT_EQ(SecondsText(-12'000'000), "-12");
}

TEST(AppendSecondsTest, FractionsEndAtTheirLastDigit) {
  EXPECT_EQ(SecondsText(12'500'000), "12.5");
  EXPECT_EQ(SecondsText(1), "0.000001");
  EXPECT_EQ(SecondsText(100'010), "0.10001");
  EXPECT_EQ(SecondsText(999'999), "0.999999");
}

TEST(AppendSecondsTest, NegativeFractionsKeepTheirSign) {
  EXPECT_EQ(SecondsText(-1), "-0.000001");
  EXPECT_EQ(SecondsText(-500'000), "-0.5");
  EXPECT_EQ(SecondsText(-1'250'000), "-1.25");
}

TEST(AppendSecondsTest, TheLargestAndTheSmallestAreExact) {
  EXPECT_EQ(SecondsText(std::numeric_limits<std::int64_t>::max()), "9223372036854.775807");
  EXPECT_EQ(SecondsText(std::numeric_limits<std::int64_t>::min()), "-9223372036854.775808");
}

TEST(AppendSecondsTest, AppendsToWhatIsThere) {
  std::string text = "a,";
  AppendSeconds(Duration{2'000'000}, text);
  EXPECT_EQ(text, "a,2");
}

TEST(AppendMillionthsTest, RoundsToTheNearest) {
  EXPECT_EQ(MillionthsText(0), "0");
  EXPECT_EQ(MillionthsText(0.1 + 0.2), "0.3");
  EXPECT_EQ(MillionthsText(1.0 / 3), "0.333333");
  EXPECT_EQ(MillionthsText(2e-7), "0");
  EXPECT_EQ(MillionthsText(-2.5), "-2.5");
}

TEST(AppendMillionthsTest, NeverUsesAnExponent) {
  EXPECT_EQ(MillionthsText(1e12), "1000000000000");
  EXPECT_EQ(MillionthsText(1e15), "1000000000000000");
  EXPECT_EQ(MillionthsText(1e300).size(), 301U);
}

TEST(AppendIntegerTest, WritesTheWholeRange) {
  std::string text;
  AppendInteger(std::numeric_limits<std::int64_t>::min(), text);
  EXPECT_EQ(text, "-9223372036854775808");
}

}  // namespace
}  // namespace trainyard::base
