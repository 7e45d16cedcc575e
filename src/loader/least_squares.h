// SPDX-License-Identifier: Apache-2.0
// Small dense least-squares problems, by LAPACK. No scheduling vocabulary here.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace trainyard::loader {

// One row for each observation, one column for each coefficient.
struct DesignMatrix {
  std::size_t columns = 0;
  std::vector<double> cells;  // row by row

  [[nodiscard]] std::size_t rows() const { return columns == 0 ? 0 : cells.size() / columns; }
  [[nodiscard]] double at(std::size_t row, std::size_t column) const {
    return cells[row * columns + column];
  }
};

// The coefficients with the least sum of squared residuals; of several such, those that are
// smallest with every column scaled to length 1. REQUIRES: target.size() == rows() >= 1.
[[nodiscard]] std::vector<double> LeastSquares(const DesignMatrix& design,
                                               std::span<const double> target);

// The same with no coefficient below zero: the best among all sets of columns whose free solution
// is not negative, which is exact and cheap for a handful of columns.
// REQUIRES: as above, columns <= kMostNonNegative.
inline constexpr std::size_t kMostNonNegative = 12;
[[nodiscard]] std::vector<double> NonNegativeLeastSquares(const DesignMatrix& design,
                                                          std::span<const double> target);

// Sum of coefficient times cell.
[[nodiscard]] double Predict(const DesignMatrix& design, std::size_t row,
                             std::span<const double> coefficients);

}  // namespace trainyard::loader
