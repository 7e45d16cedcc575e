// SPDX-License-Identifier: Apache-2.0
#include "solver/minimise.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace trainyard::solver {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();

// Rosenbrock's valley, whose least value, 0, is at (1, 1).
double Valley(std::span<const double> at, std::span<double> slopes) {
  const double across = at[1] - at[0] * at[0];
  slopes[0] = -2 * (1 - at[0]) - 400 * at[0] * across;
  slopes[1] = 200 * across;
  return (1 - at[0]) * (1 - at[0]) + 100 * across * across;
}

TEST(MinimiseTest, FindsTheLeastValueOfACurvedValley) {
  const std::array<Bounds, 2> bounds{{{-kFar, kFar}, {-kFar, kFar}}};
  const Minimum found = Minimise(Valley, bounds, {-1.2, 1});
  EXPECT_NEAR(found.at[0], 1, 1e-4);
  EXPECT_NEAR(found.at[1], 1, 1e-4);
  EXPECT_NEAR(found.value, 0, 1e-8);
}

TEST(MinimiseTest, StaysWithinBounds) {
  const std::array<Bounds, 2> bounds{{{-2, 0.5}, {-2, 2}}};
  const Minimum found = Minimise(Valley, bounds, {-1.2, 1});
  EXPECT_NEAR(found.at[0], 0.5, 1e-6);
  EXPECT_NEAR(found.at[1], 0.25, 1e-4);
}

TEST(MinimiseTest, EqualBoundsFixANumber) {
  const std::array<Bounds, 2> bounds{{{0, 0}, {-2, 2}}};
  const Minimum found = Minimise(Valley, bounds, {0, 1});
  EXPECT_EQ(found.at[0], 0);
  EXPECT_NEAR(found.at[1], 0, 1e-4);
}

TEST(MinimiseTest, IsNeverWorseThanTheStartAndTheSameEachTime) {
  const std::array<Bounds, 2> bounds{{{-kFar, kFar}, {-kFar, kFar}}};
  const Minimum once = Minimise(Valley, bounds, {1, 1});
  EXPECT_EQ(once.value, 0);
  const Minimum first = Minimise(Valley, bounds, {3, -7}, {.evaluations = 20});
  const Minimum second = Minimise(Valley, bounds, {3, -7}, {.evaluations = 20});
  EXPECT_EQ(first.at, second.at);
}

}  // namespace
}  // namespace trainyard::solver
