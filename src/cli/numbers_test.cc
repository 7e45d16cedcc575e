// SPDX-License-Identifier: Apache-2.0
#include "cli/numbers.h"

#include <gtest/gtest.h>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <cstdint>

namespace trainyard::cli {
namespace {

// What the user is told; empty: nothing is wrong.
std::string MessageFor(const CLI::Validator& validator, const std::string& text) {
  CLI::App app;
  double value = 0;
  app.add_option("--x", value)->check(validator);
  try {
    app.parse("--x " + text);
  } catch (const CLI::Error& error) {
    return error.what();
  }
  return "";
}

// What an option takes the text for.
template <typename T>
std::string Taken(const CLI::Validator& form, const std::string& text) {
  CLI::App app;
  T value = 0;
  app.add_option("--x", value)->check(CLI::Range(T{0}, T{1'000'000}))->transform(form);
  try {
    app.parse("--x " + text);
  } catch (const CLI::Error& error) {
    return error.what();
  }
  return fmt::format("{}", value);
}

TEST(NumbersTest, AnEmptyTextIsNone) {
  CLI::App app;
  std::string value;
  app.add_option("--x", value)->check(NotEmpty());
  app.parse(std::vector<std::string>{"a", "--x"});
  EXPECT_EQ(value, "a");
  try {
    app.parse(std::vector<std::string>{"", "--x"});
    FAIL() << "an empty value is taken";
  } catch (const CLI::Error& error) {
    EXPECT_EQ(std::string(error.what()),
              "--x: the value is empty; expected one, or no such option");
  }
}

TEST(NumbersTest, TimesHaveUnitsBeforeTheyAreChecked) {
  EXPECT_EQ(Taken<double>(Span(), "1h30m"), "5400");
  EXPECT_EQ(Taken<double>(Span(3600), "90m"), "1.5");
  EXPECT_EQ(Taken<double>(Span(3600), "2"), "2");
  EXPECT_EQ(Taken<double>(Span(), "1e3"), "1000");
  EXPECT_EQ(Taken<double>(Span(), "soon"),
            "--x: 'soon' is no time; expected a number, or 90s, 15m, 2h, 1h30m, 1d");
  EXPECT_NE(Taken<double>(Span(), "365d"), "31536000");  // too large
}

TEST(NumbersTest, CountsMayHaveExponents) {
  EXPECT_EQ(Taken<int>(WholeNumber(), "1e6"), "1000000");
  EXPECT_EQ(Taken<int>(WholeNumber(), "12"), "12");
  EXPECT_EQ(Taken<int>(WholeNumber(), "0x10"), "16");
  EXPECT_EQ(Taken<int>(WholeNumber(), "1.5"),
            "--x: '1.5' is no whole number; expected digits, such as 100000 or 1e5");
  EXPECT_EQ(Taken<int>(WholeNumber(), "100k"),
            "--x: '100k' is no whole number; expected digits, such as 100000 or 1e5");
  EXPECT_NE(Taken<int>(WholeNumber(), "1e7").find("--x"), std::string::npos);  // too many
}

TEST(NumbersTest, NumbersWithoutASignDoNotWrapAround) {
  EXPECT_EQ(Taken<std::uint64_t>(Unsigned(), "1e3"), "1000");
  EXPECT_EQ(Taken<std::uint64_t>(Unsigned(), "-1"),
            "--x: -1: expected a whole number of at least 0");
  EXPECT_EQ(Taken<std::uint64_t>(Unsigned(), "few"),
            "--x: 'few' is no whole number; expected digits, such as 100000 or 1e5");
  CLI::App app;
  std::uint64_t seed = 0;
  app.add_option("--seed", seed)->transform(Unsigned());
  app.parse("--seed 18446744073709551615");
  EXPECT_EQ(seed, 18446744073709551615U);
}

TEST(NumbersTest, BoundsAreToldInWords) {
  EXPECT_EQ(MessageFor(Positive(), "1e-9"), "");
  EXPECT_EQ(MessageFor(Positive(), "0"), "--x: 0: expected a number above 0");
  EXPECT_EQ(MessageFor(Positive(), "nan"), "--x: nan: expected a number above 0");
  EXPECT_EQ(MessageFor(Positive(), "inf"), "--x: inf: expected a number above 0");
  EXPECT_EQ(MessageFor(NonNegative(), "0"), "");
  EXPECT_EQ(MessageFor(NonNegative(), "-1"), "--x: -1: expected a number of at least 0");
  EXPECT_EQ(MessageFor(NonNegative(), "many"), "--x: many: expected a number of at least 0");
  EXPECT_EQ(MessageFor(Finite(), "-3"), "");
  EXPECT_EQ(MessageFor(Finite(), "inf"), "--x: inf is no finite number");
}

}  // namespace
}  // namespace trainyard::cli
