// SPDX-License-Identifier: Apache-2.0
#include "cli/numbers.h"

#include <gtest/gtest.h>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace trainyard {
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
}  // namespace trainyard
