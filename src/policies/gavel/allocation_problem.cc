// SPDX-License-Identifier: Apache-2.0
#include "policies/gavel/allocation_problem.h"

#include <algorithm>
#include <numeric>

#include "policies/gavel/pair_book.h"

namespace trainyard::policies {

Allocation NoShares(const AllocationProblem& problem) {
  Allocation allocation;
  for (std::size_t i = 0; i < problem.jobs.size(); ++i) {
    allocation.units.push_back({i, i, std::vector<double>(problem.types(), 0.0)});
  }
  return allocation;
}

double MeanRate(const AllocationProblem& problem, const AllocationJob& job) {
  const double all = std::accumulate(problem.gpus.begin(), problem.gpus.end(), 0.0);
  double sum = 0;
  for (std::size_t j = 0; j < problem.types(); ++j) {
    sum += job.rates[j] * problem.gpus[j] / all;
  }
  return sum;
}

std::vector<std::vector<double>> IsolatedShares(const AllocationProblem& problem) {
  std::vector<std::vector<double>> shares;
  const auto jobs = static_cast<double>(problem.jobs.size());
  for (const AllocationJob& job : problem.jobs) {
    std::vector<double> own;
    double sum = 0;
    for (const double gpus : problem.gpus) {
      own.push_back(gpus / jobs / job.gpus);
      sum += own.back();
    }
    for (double& share : own) {
      share /= std::max(1.0, sum);
    }
    shares.push_back(std::move(own));
  }
  return shares;
}

std::vector<double> IsolatedRates(const AllocationProblem& problem) {
  const std::vector<std::vector<double>> shares = IsolatedShares(problem);
  std::vector<double> rates;
  for (std::size_t i = 0; i < problem.jobs.size(); ++i) {
    rates.push_back(
        std::inner_product(shares[i].begin(), shares[i].end(), problem.jobs[i].rates.begin(), 0.0));
  }
  return rates;
}

std::vector<double> RatesBy(const AllocationProblem& problem, const Allocation& allocation) {
  const PairBook pairs(problem);
  std::vector<double> rates(problem.jobs.size(), 0.0);
  for (const AllocationUnit& unit : allocation.units) {
    const std::span<const double> first = pairs.RatesOf(unit, unit.first);
    rates[unit.first] += std::inner_product(first.begin(), first.end(), unit.shares.begin(), 0.0);
    if (!unit.alone()) {
      const std::span<const double> second = pairs.RatesOf(unit, unit.second);
      rates[unit.second] +=
          std::inner_product(second.begin(), second.end(), unit.shares.begin(), 0.0);
    }
  }
  return rates;
}

}  // namespace trainyard::policies
