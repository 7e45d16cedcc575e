// SPDX-License-Identifier: Apache-2.0
// Allocations that need no program: isolated shares, FIFO by throughput, equal units.
#include "policies/gavel/simple_allocations.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "policies/gavel/pair_book.h"

namespace trainyard::policies {
namespace {

// The type on which the job is fastest of those with enough GPUs left; the first of equals.
std::optional<std::size_t> FastestWithRoom(const AllocationJob& job, std::span<const double> left) {
  std::optional<std::size_t> best;
  for (std::size_t j = 0; j < left.size(); ++j) {
    if (left[j] >= job.gpus && (!best || job.rates[j] > job.rates[*best])) {
      best = j;
    }
  }
  return best;
}

class FifoQueue {
 public:
  explicit FifoQueue(const AllocationProblem& problem)
      : problem_(problem), left_(problem.gpus), allocation_(NoShares(problem)) {}

  [[nodiscard]] Allocation Take(bool first_is_lost) {
    const std::size_t jobs = problem_.jobs.size();
    std::size_t next = 0;
    for (; next < jobs; ++next) {
      const std::optional<std::size_t> type = FastestWithRoom(problem_.jobs[next], left_);
      if (!type) {
        break;  // nobody overtakes
      }
      if (problem_.jobs[next].rates[*type] > 0) {
        allocation_.units[next].shares[*type] = 1;
        left_[*type] -= problem_.jobs[next].gpus;
        placed_.push_back({next, *type});
      }
    }
    if (first_is_lost &&
        std::any_of(left_.begin(), left_.end(), [](double gpus) { return gpus > 0; })) {
      ++next;
    }
    const PairBook pairs(problem_);
    while (!problem_.pairs.empty() && next < jobs && Join(pairs, next)) {
      ++next;
    }
    return std::move(allocation_);
  }

 private:
  // False: with nobody the job is worth it.
  bool Join(const PairBook& pairs, std::size_t job) {
    constexpr double kWorth = 1.5;
    double most = kWorth;
    auto best = placed_.end();
    for (auto placed = placed_.begin(); placed != placed_.end(); ++placed) {
      if (problem_.jobs[placed->job].gpus != problem_.jobs[job].gpus) {
        continue;
      }
      const double worth = PairedWorth(problem_, pairs, job, placed->job, placed->type);
      if (worth > most) {
        most = worth;
        best = placed;
      }
    }
    if (best == placed_.end()) {
      return false;
    }
    AllocationUnit unit{std::min(job, best->job), std::max(job, best->job),
                        std::vector<double>(problem_.types(), 0.0)};
    unit.shares[best->type] = 1;
    allocation_.units[best->job].shares[best->type] = 0;
    allocation_.units.push_back(std::move(unit));
    placed_.erase(best);
    return true;
  }

  const AllocationProblem& problem_;
  std::vector<double> left_;
  struct Placed {
    std::size_t job = 0;
    std::size_t type = 0;
  };
  std::vector<Placed> placed_;  // alone
  Allocation allocation_;
};

}  // namespace

AllocationProblem WithoutTypes(AllocationProblem problem) {
  const auto level = [](std::vector<double>& rates) {
    const double most = rates.empty() ? 0 : *std::max_element(rates.begin(), rates.end());
    for (double& rate : rates) {
      rate = rate > 0 ? most : 0;
    }
  };
  for (AllocationJob& job : problem.jobs) {
    level(job.rates);
  }
  for (PairRates& pair : problem.pairs) {
    level(pair.first_rates);
    level(pair.second_rates);
  }
  return problem;
}

Allocation SpreadOverTypes(const AllocationProblem& problem, Allocation allocation) {
  const bool blind =
      problem.pairs.empty() &&
      std::all_of(problem.jobs.begin(), problem.jobs.end(), [](const AllocationJob& job) {
        return std::all_of(job.rates.begin(), job.rates.end(),
                           [&job](double rate) { return rate == job.rates.front(); });
      });
  if (!blind) {
    return allocation;
  }
  const double all = std::accumulate(problem.gpus.begin(), problem.gpus.end(), 0.0);
  for (AllocationUnit& unit : allocation.units) {
    const double share = std::accumulate(unit.shares.begin(), unit.shares.end(), 0.0);
    for (std::size_t j = 0; j < problem.types(); ++j) {
      unit.shares[j] = share * problem.gpus[j] / all;
    }
  }
  return allocation;
}

Allocation Isolated(const AllocationProblem& problem) {
  Allocation allocation = NoShares(problem);
  std::vector<std::vector<double>> shares = IsolatedShares(problem);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    allocation.units[i].shares = std::move(shares[i]);
  }
  return allocation;
}

Allocation FifoByThroughput(const AllocationProblem& problem, bool first_is_lost) {
  return FifoQueue(problem).Take(first_is_lost);
}

Allocation EqualUnits(const AllocationProblem& problem, std::span<const std::size_t> partners) {
  Allocation allocation = NoShares(problem);
  AllocationProblem units{.gpus = problem.gpus};
  std::vector<AllocationUnit> of;
  for (std::size_t i = 0; i < problem.jobs.size(); ++i) {
    if (partners[i] >= i) {
      units.jobs.push_back(problem.jobs[i]);
      of.push_back({i, partners[i], {}});
    }
  }
  std::vector<std::vector<double>> shares = IsolatedShares(units);
  for (std::size_t u = 0; u < of.size(); ++u) {
    if (of[u].alone()) {
      allocation.units[of[u].first].shares = std::move(shares[u]);
    } else {
      of[u].shares = std::move(shares[u]);
      allocation.units.push_back(std::move(of[u]));
    }
  }
  return allocation;
}

}  // namespace trainyard::policies
