// SPDX-License-Identifier: Apache-2.0
#include "policies/gavel/pair_book.h"

#include <algorithm>

namespace trainyard::policies {

PairBook::PairBook(const AllocationProblem& problem) : problem_(problem) {
  for (const PairRates& pair : problem.pairs) {
    rates_.emplace(std::pair(pair.first, pair.second), &pair);
  }
}

const PairRates* PairBook::Find(int kind, int other) const {
  const auto found = rates_.find(std::minmax(kind, other));
  return found == rates_.end() ? nullptr : found->second;
}

std::span<const double> PairBook::RatesOf(const AllocationUnit& unit, std::size_t job) const {
  if (unit.alone()) {
    return problem_.jobs[job].rates;
  }
  const int kind = problem_.jobs[job].kind;
  const int other = problem_.jobs[job == unit.first ? unit.second : unit.first].kind;
  const PairRates* const pair = Find(kind, other);
  if (pair == nullptr) {
    return {};
  }
  // Of equal kinds both run alike.
  return kind <= other ? pair->first_rates : pair->second_rates;
}

double PairedWorth(const AllocationProblem& problem, const PairBook& pairs, std::size_t job,
                   std::size_t other, std::size_t type) {
  const AllocationUnit unit{std::min(job, other), std::max(job, other), {}};
  double worth = 0;
  for (const std::size_t one : {job, other}) {
    const std::span<const double> rates = pairs.RatesOf(unit, one);
    const double alone = problem.jobs[one].rates[type];
    worth += rates.empty() || alone <= 0 ? 0 : rates[type] / alone;
  }
  return worth;
}

}  // namespace trainyard::policies
