// SPDX-License-Identifier: Apache-2.0
// AlloX: jobs of one GPU each, matched with GPUs and the places in their queues, from the last one.
#include "policies/gavel/allox_matching.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "solver/matching.h"

namespace trainyard::policies {
namespace {

bool RunsOnOne(const AllocationJob& job, const std::vector<std::size_t>& types) {
  return std::any_of(types.begin(), types.end(), [&](std::size_t j) { return job.rates[j] > 0; });
}

// Of each job in each place: the positions from the end of the queues, in each the types.
std::vector<std::vector<double>> CostsOf(const AllocationProblem& problem,
                                         const std::vector<std::size_t>& jobs,
                                         const std::vector<std::size_t>& types) {
  std::vector<std::vector<double>> costs;
  costs.reserve(jobs.size());
  for (const std::size_t i : jobs) {
    const AllocationJob& job = problem.jobs[i];
    std::vector<double> own;
    own.reserve(jobs.size() * types.size());
    for (std::size_t position = 1; position <= jobs.size(); ++position) {
      for (const std::size_t j : types) {
        own.push_back(job.rates[j] > 0
                          ? static_cast<double>(position) * job.work_left / job.rates[j] + job.age
                          : std::numeric_limits<double>::infinity());
      }
    }
    costs.push_back(std::move(own));
  }
  return costs;
}

}  // namespace

Allocation Allox(const AllocationProblem& problem, std::span<const PlacedJob> placed) {
  Allocation allocation = NoShares(problem);
  std::vector<double> free = problem.gpus;
  std::vector<bool> waits(problem.jobs.size(), true);
  for (const PlacedJob& job : placed) {
    allocation.units[job.job].shares[job.type] = 1;
    free[job.type] -= 1;
    waits[job.job] = false;
  }
  std::vector<std::size_t> jobs;
  for (std::size_t i = 0; i < problem.jobs.size(); ++i) {
    if (waits[i]) {
      jobs.push_back(i);
    }
  }
  // Classes of places: by position, then by type with free GPUs.
  std::vector<std::size_t> types;
  for (std::size_t j = 0; j < problem.types(); ++j) {
    if (free[j] >= 1) {
      types.push_back(j);
    }
  }
  std::erase_if(jobs, [&](std::size_t i) { return !RunsOnOne(problem.jobs[i], types); });
  if (jobs.empty()) {
    return allocation;
  }
  const std::vector<std::vector<double>> costs = CostsOf(problem, jobs, types);
  std::vector<std::int64_t> room;
  for (std::size_t position = 1; position <= jobs.size(); ++position) {
    for (const std::size_t j : types) {
      room.push_back(static_cast<std::int64_t>(free[j]));
    }
  }
  const std::vector<std::size_t> places = solver::AssignToClasses(costs, room);
  // Of each type the jobs furthest from the end of a queue run; of equals the first ones.
  std::vector<std::vector<std::pair<std::size_t, std::size_t>>> queues(types.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    allocation.objective += costs[i][places[i]];
    queues[places[i] % types.size()].emplace_back(jobs.size() - places[i] / types.size(), jobs[i]);
  }
  for (std::size_t t = 0; t < types.size(); ++t) {
    std::sort(queues[t].begin(), queues[t].end());
    const auto runs = std::min(queues[t].size(), static_cast<std::size_t>(free[types[t]]));
    for (std::size_t q = 0; q < runs; ++q) {
      allocation.units[queues[t][q].second].shares[types[t]] = 1;
    }
  }
  return allocation;
}

}  // namespace trainyard::policies
