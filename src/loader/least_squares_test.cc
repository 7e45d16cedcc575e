// SPDX-License-Identifier: Apache-2.0
#include "loader/least_squares.h"

#include <gtest/gtest.h>

#include <random>

namespace trainyard::loader {
namespace {

TEST(LeastSquaresTest, FindsTheLineThroughPoints) {
  const DesignMatrix design{.columns = 2, .cells = {1, 0, 1, 1, 1, 2, 1, 3}};
  const std::vector<double> target{1, 3, 5, 7};
  const std::vector<double> solved = LeastSquares(design, target);
  EXPECT_NEAR(solved[0], 1, 1e-12);
  EXPECT_NEAR(solved[1], 2, 1e-12);
}

TEST(LeastSquaresTest, ColumnsOfVeryDifferentSizeAreTold) {
  const DesignMatrix design{.columns = 2, .cells = {1, 1e11, 1, 2e11, 1, 5e11}};
  const std::vector<double> target{0.5 + 0.04, 0.5 + 0.08, 0.5 + 0.2};
  const std::vector<double> solved = LeastSquares(design, target);
  EXPECT_NEAR(solved[0], 0.5, 1e-12);
  EXPECT_NEAR(solved[1], 4e-13, 1e-24);
}

TEST(LeastSquaresTest, AnEmptyColumnGetsNothing) {
  const DesignMatrix design{.columns = 2, .cells = {1, 0, 2, 0}};
  const std::vector<double> target{3, 6};
  const std::vector<double> solved = LeastSquares(design, target);
  EXPECT_NEAR(solved[0], 3, 1e-12);
  EXPECT_EQ(solved[1], 0);
}

TEST(NonNegativeLeastSquaresTest, IsTheFreeSolutionWhereThatIsNotNegative) {
  const DesignMatrix design{.columns = 2, .cells = {1, 0, 1, 1, 1, 2}};
  const std::vector<double> target{1, 3, 5};
  const std::vector<double> solved = NonNegativeLeastSquares(design, target);
  EXPECT_NEAR(solved[0], 1, 1e-12);
  EXPECT_NEAR(solved[1], 2, 1e-12);
}

TEST(NonNegativeLeastSquaresTest, AFallingLineBecomesItsMean) {
  const DesignMatrix design{.columns = 2, .cells = {1, 0, 1, 1, 1, 2}};
  const std::vector<double> target{6, 3, 0};
  const std::vector<double> solved = NonNegativeLeastSquares(design, target);
  EXPECT_NEAR(solved[0], 3, 1e-12);
  EXPECT_EQ(solved[1], 0);
}

// At the optimum no column whose coefficient is zero would gain by growing, and every other one
// has nothing to gain (Karush-Kuhn-Tucker).
TEST(NonNegativeLeastSquaresTest, SatisfiesTheOptimalityConditions) {
  std::mt19937 random(7);  // NOLINT(bugprone-random-generator-seed): the same each time
  std::uniform_real_distribution<double> cell(-1, 1);
  for (int round = 0; round < 50; ++round) {
    DesignMatrix design{.columns = 4};
    std::vector<double> target;
    for (int row = 0; row < 12; ++row) {
      for (std::size_t column = 0; column < design.columns; ++column) {
        design.cells.push_back(cell(random));
      }
      target.push_back(cell(random));
    }
    const std::vector<double> solved = NonNegativeLeastSquares(design, target);
    for (std::size_t column = 0; column < design.columns; ++column) {
      double gain = 0;
      for (std::size_t row = 0; row < design.rows(); ++row) {
        gain += design.at(row, column) * (target[row] - Predict(design, row, solved));
      }
      EXPECT_GE(solved[column], 0);
      EXPECT_LE(gain, 1e-9);
      if (solved[column] > 0) {
        EXPECT_NEAR(gain, 0, 1e-9);
      }
    }
  }
}

}  // namespace
}  // namespace trainyard::loader
