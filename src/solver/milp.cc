// SPDX-License-Identifier: Apache-2.0
#include "solver/milp.h"

#include <coin/Cbc_C_Interface.h>

#include <cmath>
#include <memory>
#include <string>

#include "base/check.h"

namespace trainyard {

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

void MilpModel::SetBounds(int column, double lower, double upper) {
  CHECK(lower <= upper);
  MilpColumn& changed = columns_.at(static_cast<std::size_t>(column));
  changed.lower = lower;
  changed.upper = upper;
}

// One model in CBC's own form.
class CbcProblem {
 public:
  CbcProblem(const MilpModel& model, const MilpOptions& options) : model_(model) {
    Load();
    for (int column = 0; column < model.columns(); ++column) {
      if (model.columns_[static_cast<std::size_t>(column)].integer) {
        Cbc_setInteger(cbc_.get(), column);
      }
    }
    Cbc_setObjSense(cbc_.get(), options.maximize ? -1 : 1);
    Cbc_setLogLevel(cbc_.get(), 0);
    Cbc_setParameter(cbc_.get(), "slogLevel", "0");
    Cbc_setParameter(cbc_.get(), "threads", "0");
    Cbc_setParameter(cbc_.get(), "maxNodes", std::to_string(options.node_limit).c_str());
    if (!options.preprocess) {
      Cbc_setParameter(cbc_.get(), "preprocess", "off");
    }
  }

  MilpSolution Solve() {
    Cbc_solve(cbc_.get());
    MilpSolution solution;
    if (Cbc_isProvenInfeasible(cbc_.get()) != 0) {
      solution.status = MilpStatus::kInfeasible;
      return solution;
    }
    const double* best = Cbc_bestSolution(cbc_.get());
    const bool optimal = Cbc_isProvenOptimal(cbc_.get()) != 0;
    if (best == nullptr && optimal) {  // a model without integer columns
      best = Cbc_getColSolution(cbc_.get());
    }
    if (best == nullptr) {
      return solution;
    }
    solution.status = optimal ? MilpStatus::kOptimal : MilpStatus::kFeasible;
    Take(best, solution);
    return solution;
  }

 private:
  struct Deleter {
    void operator()(Cbc_Model* model) const { Cbc_deleteModel(model); }
  };

  // CBC wants the matrix by columns.
  void Load() {
    const auto columns = static_cast<std::size_t>(model_.columns());
    std::vector<CoinBigIndex> starts(columns + 1, 0);
    for (const MilpTerm& term : model_.terms_) {
      ++starts[static_cast<std::size_t>(term.column) + 1];
    }
    for (std::size_t column = 0; column < columns; ++column) {
      starts[column + 1] += starts[column];
    }
    std::vector<int> rows(model_.terms_.size());
    std::vector<double> coefficients(model_.terms_.size());
    std::vector<CoinBigIndex> next(starts.begin(), starts.end() - 1);
    for (int row = 0; row < model_.rows(); ++row) {
      const auto index = static_cast<std::size_t>(row);
      for (std::size_t t = model_.row_starts_[index]; t < model_.row_starts_[index + 1]; ++t) {
        const MilpTerm& term = model_.terms_[t];
        const auto place = static_cast<std::size_t>(next[static_cast<std::size_t>(term.column)]++);
        rows[place] = row;
        coefficients[place] = term.coefficient;
      }
    }
    std::vector<double> lower, upper, objective, row_lower, row_upper;
    for (const MilpColumn& column : model_.columns_) {
      lower.push_back(column.lower);
      upper.push_back(column.upper);
      objective.push_back(column.objective);
    }
    for (const MilpModel::RowBounds& bounds : model_.bounds_) {
      row_lower.push_back(bounds.lower);
      row_upper.push_back(bounds.upper);
    }
    Cbc_loadProblem(cbc_.get(), model_.columns(), model_.rows(), starts.data(), rows.data(),
                    coefficients.data(), lower.data(), upper.data(), objective.data(),
                    row_lower.data(), row_upper.data());
  }

  // The objective is summed here: CBC's own has passed through scaling.
  void Take(const double* best, MilpSolution& solution) const {
    solution.values.assign(best, best + model_.columns());
    for (std::size_t column = 0; column < solution.values.size(); ++column) {
      double& value = solution.values[column];
      if (model_.columns_[column].integer) {
        value = std::round(value) + 0.0;  // never -0
      }
      solution.objective += model_.columns_[column].objective * value;
    }
  }

  const MilpModel& model_;
  std::unique_ptr<Cbc_Model, Deleter> cbc_{Cbc_newModel()};
};

MilpSolution SolveMilp(const MilpModel& model, const MilpOptions& options) {
  if (model.columns() == 0) {
    return {.status = MilpStatus::kOptimal};
  }
  return CbcProblem(model, options).Solve();
}

}  // namespace trainyard
