// SPDX-License-Identifier: Apache-2.0
// Linear programs, with integer columns or without, for planners. CBC and CLP solve them; only
// milp.cc knows these.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace trainyard::solver {

inline constexpr double kMilpInfinity = std::numeric_limits<double>::infinity();

struct MilpColumn {
  double lower = 0;
  double upper = 1;
  double objective = 0;
  bool integer = true;
};

struct MilpTerm {
  int column = 0;
  double coefficient = 0;
};

enum class MilpSense : std::uint8_t { kAtMost, kAtLeast, kEqual };

// A model is built column by column and row by row; both are numbered from 0.
class MilpModel {
 public:
  // The number of the new column. REQUIRES: lower <= upper.
  int AddColumn(const MilpColumn& column);
  // sum(coefficient x column) `sense` `bound`. The number of the new row.
  // REQUIRES: the columns exist; each at most once.
  int AddRow(std::span<const MilpTerm> terms, MilpSense sense, double bound);
  // REQUIRES: the column exists.
  void SetObjective(int column, double objective);
  void AddObjective(int column, double more);
  void SetBounds(int column, double lower, double upper);

  [[nodiscard]] int columns() const { return static_cast<int>(columns_.size()); }
  [[nodiscard]] int rows() const { return static_cast<int>(bounds_.size()); }

 private:
  friend class CbcProblem;
  struct RowBounds {
    double lower = 0;
    double upper = 0;
  };
  std::vector<MilpColumn> columns_;
  std::vector<RowBounds> bounds_;
  std::vector<std::size_t> row_starts_{0};
  std::vector<MilpTerm> terms_;  // by row
};

struct MilpOptions {
  bool maximize = false;
  // Nodes of the search tree, never seconds: the answer must not depend on the machine.
  int node_limit = 100'000;
  // Branch and bound alone: for programs of few columns, where setting up CBC's cuts and heuristics
  // takes longer than the search.
  bool tree_only = false;
};

enum class MilpStatus : std::uint8_t {
  kOptimal,
  kFeasible,    // the node limit came first; the values satisfy all rows
  kInfeasible,  // proven
  kUnsolved,    // the node limit came before any solution, or the model is unbounded
};

struct MilpSolution {
  MilpStatus status = MilpStatus::kUnsolved;
  double objective = 0;
  std::vector<double> values;  // by column, integer columns rounded; empty: there is no solution

  [[nodiscard]] bool has_values() const {
    return status == MilpStatus::kOptimal || status == MilpStatus::kFeasible;
  }
};

// Prints nothing, uses the calling thread only. The same model gives the same solution; which of
// several optimal ones is up to the solver, so callers that care break ties themselves.
[[nodiscard]] MilpSolution SolveMilp(const MilpModel& model, const MilpOptions& options = {});

// Where the simplex method stood at its end, to start from in a model of the same columns and rows.
class LinearBasis {
 public:
  LinearBasis() = default;

 private:
  friend class CbcProblem;
  std::vector<unsigned char> states_;  // of the columns, then of the rows; empty: none
};

struct LinearOptions {
  bool maximize = false;
  // Steps of the simplex method, never seconds: the answer must not depend on the machine.
  int step_limit = 200'000;
};

struct LinearSolution {
  MilpStatus status = MilpStatus::kUnsolved;  // kFeasible: the step limit came first
  double objective = 0;
  std::vector<double> values;  // by column; empty: there is no solution
  // By row: what the optimum gains for each unit that the bound of the row is raised by; of no
  // meaning unless the status is kOptimal.
  std::vector<double> prices;
};

// A vertex of the model as if no column were integer, by CLP's simplex method, with tolerances of
// 1e-9. `basis`: where to start, and where it ended; null: from the beginning. Prints nothing, uses
// the calling thread only; the same model and basis give the same solution.
[[nodiscard]] LinearSolution SolveLinear(const MilpModel& model, const LinearOptions& options = {},
                                         LinearBasis* basis = nullptr);

}  // namespace trainyard::solver
