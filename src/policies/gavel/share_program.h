// SPDX-License-Identifier: Apache-2.0
// The linear programs of Gavel's policies (OSDI'20, section 4 and appendix): shares of time by job
// and type, within what jobs and types have. Jobs that are alike are one column, so that a program
// is as large as there are kinds of jobs, and alike jobs have equal shares.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "policies/gavel/allocation_problem.h"
#include "policies/gavel/pair_book.h"
#include "solver/milp.h"

namespace trainyard::policies {

class ShareProgram {
 public:
  // Jobs are alike if all of AllocationJob is that the program may count: kind, GPUs, weight, rates
  // and `key` (by job; empty: nothing more). `problem` must outlive the program.
  explicit ShareProgram(const AllocationProblem& problem, std::span<const double> key = {});

  // Classes of alike jobs, in the order of their first jobs; each at least one.
  [[nodiscard]] std::size_t classes() const { return members_.size(); }
  [[nodiscard]] std::size_t members(std::size_t of) const { return members_[of].size(); }
  // The first job of the class.
  [[nodiscard]] const AllocationJob& job(std::size_t of) const {
    return problem_.jobs[members_[of].front()];
  }
  [[nodiscard]] std::size_t class_of(std::size_t job) const { return class_of_[job]; }
  // The number of the first job of the class.
  [[nodiscard]] std::size_t first(std::size_t of) const { return members_[of].front(); }

  // Shares, and the rows that hold for all policies: a job has at most all of its time, a type at
  // most its GPUs. Minimises or maximises nothing.
  [[nodiscard]] const solver::MilpModel& base() const { return base_; }
  // `factor` times the rate of each member of the class, in the columns of base(); `prices`: by
  // type, what rates there are divided by; empty: 1.
  [[nodiscard]] std::vector<solver::MilpTerm> Rate(std::size_t of, double factor,
                                                   std::span<const double> prices = {}) const;
  // The largest rate that a member of the class could have.
  [[nodiscard]] double LargestRate(std::size_t of) const;

  // By job what the columns of base() say, cut to [0, 1].
  [[nodiscard]] Allocation Expand(std::span<const double> values) const;

 private:
  struct Column {
    int number = 0;
    std::size_t type = 0;
    std::size_t first = 0;  // class
    std::size_t second = 0;
    bool alone = true;
    // Of each member in a column alone; of all pairs together in a column of pairs.
    double first_rate = 0;
    double second_rate = 0;
  };

  void AddColumn(Column column);
  void AddColumns();
  void AddPairColumns(std::size_t a, std::size_t b, const PairRates& pair);
  void AddRows();
  // Jobs of the two classes that share: each has its part of the class's time.
  void ExpandPairs(const Column& column, double value, Allocation& allocation) const;
  [[nodiscard]] double Times(const Column& column, std::size_t of) const;

  const AllocationProblem& problem_;
  const PairBook pairs_;
  std::vector<std::vector<std::size_t>> members_;  // jobs, by class
  std::vector<std::size_t> class_of_;              // by job
  std::vector<Column> columns_;
  std::vector<std::vector<std::size_t>> columns_of_;  // by class
  solver::MilpModel base_;
};

}  // namespace trainyard::policies
