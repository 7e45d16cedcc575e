// SPDX-License-Identifier: Apache-2.0
#include "loader/least_squares.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

// LAPACK: least squares by a complete orthogonal factorisation. Its names are Fortran's.
extern "C" void dgelsy_(const int* rows, const int* columns, const int* targets, double* matrix,
                        const int* matrix_rows, double* solution, const int* solution_rows,
                        int* pivots, const double* least_condition, int* rank, double* work,
                        const int* work_size, int* info);

namespace trainyard::loader {
namespace {

// Columns that are this close to a combination of others are taken as one.
constexpr double kLeastCondition = 1e-10;

std::vector<double> Lengths(const DesignMatrix& design) {
  std::vector<double> lengths(design.columns, 0);
  for (std::size_t i = 0; i < design.cells.size(); ++i) {
    lengths[i % design.columns] += design.cells[i] * design.cells[i];
  }
  for (double& length : lengths) {
    length = length > 0 ? std::sqrt(length) : 1;
  }
  return lengths;
}

double Residuals(const DesignMatrix& design, std::span<const double> target,
                 std::span<const double> coefficients) {
  double sum = 0;
  for (std::size_t row = 0; row < design.rows(); ++row) {
    const double residual = target[row] - Predict(design, row, coefficients);
    sum += residual * residual;
  }
  return sum;
}

// Those columns whose bit is set.
DesignMatrix Chosen(const DesignMatrix& design, unsigned set) {
  DesignMatrix chosen;
  for (std::size_t i = 0; i < design.cells.size(); ++i) {
    if ((set >> (i % design.columns) & 1U) != 0) {
      chosen.cells.push_back(design.cells[i]);
    }
  }
  chosen.columns = chosen.cells.size() / design.rows();
  return chosen;
}

std::vector<double> Spread(std::span<const double> coefficients, unsigned set, std::size_t size) {
  std::vector<double> all(size, 0);
  std::size_t next = 0;
  for (std::size_t column = 0; column < size; ++column) {
    if ((set >> column & 1U) != 0) {
      all[column] = coefficients[next++];
    }
  }
  return all;
}

}  // namespace

std::vector<double> LeastSquares(const DesignMatrix& design, std::span<const double> target) {
  CHECK(design.rows() >= 1 && design.rows() == target.size());
  const int rows = static_cast<int>(design.rows());
  const int columns = static_cast<int>(design.columns);
  const std::vector<double> lengths = Lengths(design);
  std::vector<double> matrix(design.cells.size());  // column by column
  for (std::size_t row = 0; row < design.rows(); ++row) {
    for (std::size_t column = 0; column < design.columns; ++column) {
      matrix[column * design.rows() + row] = design.at(row, column) / lengths[column];
    }
  }
  std::vector<double> solution(target.begin(), target.end());
  solution.resize(std::max(design.rows(), design.columns), 0);
  std::vector<int> pivots(design.columns, 0);
  const int solution_rows = static_cast<int>(solution.size());
  const int work_size = 64 * (rows + columns + 1);
  std::vector<double> work(static_cast<std::size_t>(work_size));
  const int targets = 1;
  int rank = 0;
  int info = 0;
  dgelsy_(&rows, &columns, &targets, matrix.data(), &rows, solution.data(), &solution_rows,
          pivots.data(), &kLeastCondition, &rank, work.data(), &work_size, &info);
  CHECK(info == 0);
  solution.resize(design.columns);
  for (std::size_t column = 0; column < design.columns; ++column) {
    solution[column] /= lengths[column];
  }
  return solution;
}

std::vector<double> NonNegativeLeastSquares(const DesignMatrix& design,
                                            std::span<const double> target) {
  CHECK(design.columns <= kMostNonNegative);
  std::vector<double> best(design.columns, 0);
  double least = Residuals(design, target, best);
  for (unsigned set = 1; set < 1U << design.columns; ++set) {
    const std::vector<double> solved = LeastSquares(Chosen(design, set), target);
    if (std::any_of(solved.begin(), solved.end(), [](double value) { return value < 0; })) {
      continue;
    }
    std::vector<double> all = Spread(solved, set, design.columns);
    const double sum = Residuals(design, target, all);
    if (sum < least) {
      least = sum;
      best = std::move(all);
    }
  }
  return best;
}

double Predict(const DesignMatrix& design, std::size_t row, std::span<const double> coefficients) {
  double sum = 0;
  for (std::size_t column = 0; column < design.columns; ++column) {
    sum += coefficients[column] * design.at(row, column);
  }
  return sum;
}

}  // namespace trainyard::loader
