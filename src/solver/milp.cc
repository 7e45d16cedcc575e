// SPDX-License-Identifier: Apache-2.0
#include "solver/milp.h"

#include <coin/Cbc_C_Interface.h>
#include <coin/CbcModel.hpp>
#include <coin/ClpSimplex.hpp>
#include <coin/OsiClpSolverInterface.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "base/check.h"

namespace trainyard::solver {

int MilpModel::AddColumn(const MilpColumn& column) {
  CHECK(column.lower <= column.upper);
  columns_.push_back(column);
  return columns() - 1;
}

int MilpModel::AddRow(std::span<const MilpTerm> terms, MilpSense sense, double bound) {
  for (const MilpTerm& term : terms) {
    CHECK(term.column >= 0 && term.column < columns());
  }
  terms_.insert(terms_.end(), terms.begin(), terms.end());
  row_starts_.push_back(terms_.size());
  RowBounds row{.lower = bound, .upper = bound};
  if (sense == MilpSense::kAtMost) {
    row.lower = -kMilpInfinity;
  } else if (sense == MilpSense::kAtLeast) {
    row.upper = kMilpInfinity;
  }
  bounds_.push_back(row);
  return rows() - 1;
}

void MilpModel::SetObjective(int column, double objective) {
  columns_.at(static_cast<std::size_t>(column)).objective = objective;
}

void MilpModel::AddObjective(int column, double more) {
  columns_.at(static_cast<std::size_t>(column)).objective += more;
}

void MilpModel::SetBounds(int column, double lower, double upper) {
  CHECK(lower <= upper);
  MilpColumn& changed = columns_.at(static_cast<std::size_t>(column));
  changed.lower = lower;
  changed.upper = upper;
}

// The model as CBC wants it: the matrix by columns.
class CbcProblem {
 public:
  explicit CbcProblem(const MilpModel& model)
      : model_(model),
        starts_(static_cast<std::size_t>(model.columns()) + 1, 0),
        rows_(model.terms_.size()),
        coefficients_(model.terms_.size()) {
    SortByColumn();
    for (const MilpColumn& column : model_.columns_) {
      lower_.push_back(column.lower);
      upper_.push_back(column.upper);
      objective_.push_back(column.objective);
    }
    for (const MilpModel::RowBounds& bounds : model_.bounds_) {
      row_lower_.push_back(bounds.lower);
      row_upper_.push_back(bounds.upper);
    }
  }

  // CBC as its command runs it, with cuts and heuristics. Without preprocessing: with it,
  // CBC 2.10.8 calls worse solutions optimal, in 2 of 1,000 random programs of a few binary
  // columns; without it, in none of 6,000 (src/loader/allocation_test.cc).
  MilpSolution Solve(const MilpOptions& options) {
    const std::unique_ptr<Cbc_Model, Deleter> owner(Cbc_newModel());
    Cbc_Model* const cbc = owner.get();
    Cbc_loadProblem(cbc, model_.columns(), model_.rows(), starts_.data(), rows_.data(),
                    coefficients_.data(), lower_.data(), upper_.data(), objective_.data(),
                    row_lower_.data(), row_upper_.data());
    for (const int column : IntegerColumns()) {
      Cbc_setInteger(cbc, column);
    }
    Cbc_setObjSense(cbc, Sense(options.maximize));
    Cbc_setLogLevel(cbc, 0);
    Cbc_setParameter(cbc, "slogLevel", "0");
    Cbc_setParameter(cbc, "threads", "0");
    Cbc_setParameter(cbc, "maxNodes", std::to_string(options.node_limit).c_str());
    Cbc_setParameter(cbc, "preprocess", "off");
    Cbc_solve(cbc);
    const bool optimal = Cbc_isProvenOptimal(cbc) != 0;
    const double* best = Cbc_bestSolution(cbc);
    if (best == nullptr && optimal) {  // a model without integer columns
      best = Cbc_getColSolution(cbc);
    }
    return Solution(Cbc_isProvenInfeasible(cbc) != 0, optimal, best);
  }

  MilpSolution SearchTree(const MilpOptions& options) {
    OsiClpSolverInterface relaxation;
    relaxation.messageHandler()->setLogLevel(0);
    relaxation.loadProblem(model_.columns(), model_.rows(), starts_.data(), rows_.data(),
                           coefficients_.data(), lower_.data(), upper_.data(), objective_.data(),
                           row_lower_.data(), row_upper_.data());
    for (const int column : IntegerColumns()) {
      relaxation.setInteger(column);
    }
    relaxation.setObjSense(Sense(options.maximize));
    CbcModel tree(relaxation);
    tree.setLogLevel(0);
    tree.setMaximumNodes(options.node_limit);
    tree.branchAndBound();
    return Solution(tree.isProvenInfeasible(), tree.isProvenOptimal(), tree.bestSolution());
  }

  LinearSolution SolveRelaxed(const LinearOptions& options, LinearBasis* basis) {
    constexpr double kTolerance = 1e-9;
    ClpSimplex simplex;
    simplex.setLogLevel(0);
    simplex.loadProblem(model_.columns(), model_.rows(), starts_.data(), rows_.data(),
                        coefficients_.data(), lower_.data(), upper_.data(), objective_.data(),
                        row_lower_.data(), row_upper_.data());
    simplex.setOptimizationDirection(Sense(options.maximize));
    simplex.setPrimalTolerance(kTolerance);
    simplex.setDualTolerance(kTolerance);
    simplex.setMaximumIterations(options.step_limit);
    const auto all =
        static_cast<std::size_t>(model_.columns()) + static_cast<std::size_t>(model_.rows());
    const bool warm = basis != nullptr && basis->states_.size() == all;
    if (warm) {
      simplex.createStatus();
      std::copy(basis->states_.begin(), basis->states_.end(), simplex.statusArray());
      simplex.primal();
    } else {
      simplex.dual();
    }
    if (basis != nullptr) {
      basis->states_.assign(simplex.statusArray(), simplex.statusArray() + all);
    }
    return Vertex(simplex);
  }

 private:
  struct Deleter {
    void operator()(Cbc_Model* model) const { Cbc_deleteModel(model); }
  };

  void SortByColumn() {
    for (const MilpTerm& term : model_.terms_) {
      ++starts_[static_cast<std::size_t>(term.column) + 1];
    }
    for (std::size_t column = 1; column < starts_.size(); ++column) {
      starts_[column] += starts_[column - 1];
    }
    std::vector<CoinBigIndex> next(starts_.begin(), starts_.end() - 1);
    for (int row = 0; row < model_.rows(); ++row) {
      const auto index = static_cast<std::size_t>(row);
      for (std::size_t t = model_.row_starts_[index]; t < model_.row_starts_[index + 1]; ++t) {
        const MilpTerm& term = model_.terms_[t];
        const auto place = static_cast<std::size_t>(next[static_cast<std::size_t>(term.column)]++);
        rows_[place] = row;
        coefficients_[place] = term.coefficient;
      }
    }
  }

  [[nodiscard]] static double Sense(bool maximize) { return maximize ? -1 : 1; }

  [[nodiscard]] std::vector<int> IntegerColumns() const {
    std::vector<int> integer;
    for (int column = 0; column < model_.columns(); ++column) {
      if (model_.columns_[static_cast<std::size_t>(column)].integer) {
        integer.push_back(column);
      }
    }
    return integer;
  }

  // `best`: by column; null: there is none. The objective is summed here: CBC's own has passed
  // through scaling.
  [[nodiscard]] MilpSolution Solution(bool infeasible, bool optimal, const double* best) const {
    MilpSolution solution;
    if (infeasible) {
      solution.status = MilpStatus::kInfeasible;
    }
    if (infeasible || best == nullptr) {
      return solution;
    }
    solution.status = optimal ? MilpStatus::kOptimal : MilpStatus::kFeasible;
    solution.values.assign(best, best + model_.columns());
    for (std::size_t column = 0; column < solution.values.size(); ++column) {
      double& value = solution.values[column];
      if (model_.columns_[column].integer) {
        value = std::round(value) + 0.0;  // never -0
      }
      solution.objective += model_.columns_[column].objective * value;
    }
    return solution;
  }

  [[nodiscard]] LinearSolution Vertex(const ClpSimplex& simplex) const {
    LinearSolution solution;
    if (simplex.isProvenPrimalInfeasible()) {
      solution.status = MilpStatus::kInfeasible;
      return solution;
    }
    if (!simplex.isProvenOptimal() && !simplex.primalFeasible()) {
      return solution;
    }
    solution.status = simplex.isProvenOptimal() ? MilpStatus::kOptimal : MilpStatus::kFeasible;
    const double* const values = simplex.getColSolution();
    solution.values.assign(values, values + model_.columns());
    for (std::size_t column = 0; column < solution.values.size(); ++column) {
      solution.objective += model_.columns_[column].objective * solution.values[column];
    }
    const double* const prices = simplex.getRowPrice();
    solution.prices.assign(prices, prices + model_.rows());
    return solution;
  }

  const MilpModel& model_;
  std::vector<CoinBigIndex> starts_;  // of the columns
  std::vector<int> rows_;
  std::vector<double> coefficients_;
  std::vector<double> lower_, upper_, objective_, row_lower_, row_upper_;
};

MilpSolution SolveMilp(const MilpModel& model, const MilpOptions& options) {
  if (model.columns() == 0) {
    return {.status = MilpStatus::kOptimal};
  }
  CbcProblem problem(model);
  return options.tree_only ? problem.SearchTree(options) : problem.Solve(options);
}

LinearSolution SolveLinear(const MilpModel& model, const LinearOptions& options,
                           LinearBasis* basis) {
  if (model.columns() == 0) {
    return {.status = MilpStatus::kOptimal,
            .prices = std::vector<double>(static_cast<std::size_t>(model.rows()), 0.0)};
  }
  return CbcProblem(model).SolveRelaxed(options, basis);
}

}  // namespace trainyard::solver
