// SPDX-License-Identifier: Apache-2.0
// For tests: what the published variants of Gavel's policies (OSDI'20) ask of one allocation
// problem.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "policies/gavel/allocation_problem.h"
#include "policies/gavel/fair_allocations.h"

namespace trainyard {

// The rate of each job on all types is that of `rate`.
template <typename Rate>
[[nodiscard]] policies::AllocationProblem WithRates(policies::AllocationProblem problem,
                                                    const Rate& rate) {
  for (policies::AllocationJob& job : problem.jobs) {
    const std::vector<double> own = job.rates;
    for (std::size_t j = 0; j < own.size(); ++j) {
      job.rates[j] = rate(own, j);
    }
  }
  return problem;
}

// For policies that know no types: a rate of 1 everywhere, or that of one type.
[[nodiscard]] inline policies::AllocationProblem OfRateOne(
    const policies::AllocationProblem& problem) {
  return WithRates(problem, [](const auto&, std::size_t) { return 1.0; });
}
[[nodiscard]] inline policies::AllocationProblem OfType(const policies::AllocationProblem& problem,
                                                        std::size_t type) {
  return WithRates(problem, [type](const auto& rates, std::size_t) { return rates[type]; });
}

// `alone`: what jobs compare their finish times with.
[[nodiscard]] inline double FinishTimes(const policies::AllocationProblem& problem,
                                        const policies::AllocationProblem& alone) {
  return policies::FairFinishTimes(problem, policies::IsolatedRates(alone)).objective;
}

// Gavel divides what jobs get by their weights where they may share GPUs. Kinds are of one weight.
[[nodiscard]] inline policies::AllocationProblem OverWeights(policies::AllocationProblem problem) {
  std::map<int, double> weights;
  const auto divide = [&weights](std::vector<double>& rates, int kind) {
    for (double& rate : rates) {
      rate /= weights.at(kind);
    }
  };
  for (policies::AllocationJob& job : problem.jobs) {
    weights[job.kind] = job.weight;
    divide(job.rates, job.kind);
  }
  for (policies::PairRates& pair : problem.pairs) {
    divide(pair.first_rates, pair.first);
    divide(pair.second_rates, pair.second);
  }
  return problem;
}

// By job its level of water filling: the rate that it gets, over its mean rate.
[[nodiscard]] inline std::vector<double> LevelsBy(const policies::AllocationProblem& problem,
                                                  const policies::Allocation& allocation) {
  std::vector<double> levels = policies::RatesBy(problem, allocation);
  for (std::size_t i = 0; i < levels.size(); ++i) {
    levels[i] /= MeanRate(problem, problem.jobs[i]);
  }
  return levels;
}

}  // namespace trainyard
