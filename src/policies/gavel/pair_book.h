// SPDX-License-Identifier: Apache-2.0
// The rates of jobs that share GPUs, found by the jobs' kinds.
#pragma once

#include <map>
#include <span>
#include <utility>

#include "policies/gavel/allocation_problem.h"

namespace trainyard::policies {

class PairBook {
 public:
  // `problem` must outlive the book.
  explicit PairBook(const AllocationProblem& problem);

  // Null: these kinds do not share GPUs. In either order.
  [[nodiscard]] const PairRates* Find(int kind, int other) const;
  // By type, of the job at `job` in the unit; of no kind that may share: nothing.
  [[nodiscard]] std::span<const double> RatesOf(const AllocationUnit& unit, std::size_t job) const;

 private:
  const AllocationProblem& problem_;
  std::map<std::pair<int, int>, const PairRates*> rates_;
};

// What two jobs do on the same GPUs of one type, each against itself alone there, in sum; 0: they
// do not run so. `pairs` of `problem`.
[[nodiscard]] double PairedWorth(const AllocationProblem& problem, const PairBook& pairs,
                                 std::size_t job, std::size_t other, std::size_t type);

}  // namespace trainyard::policies
