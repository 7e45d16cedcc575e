// SPDX-License-Identifier: Apache-2.0
// Makespan and sum of throughput.
#include "policies/gavel/throughput_allocations.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "policies/gavel/share_program.h"
#include "policies/gavel/simple_allocations.h"

namespace trainyard::policies {
namespace {

using solver::LinearSolution;
using solver::MilpModel;
using solver::MilpSense;
using solver::MilpStatus;
using solver::MilpTerm;

std::vector<double> KeyOf(const AllocationProblem& problem, double AllocationJob::*field) {
  std::vector<double> key;
  for (const AllocationJob& job : problem.jobs) {
    key.push_back(job.*field);
  }
  return key;
}

// The shares of the largest sum of rates; with `deadlines`, of those that meet them.
LinearSolution SolveThroughput(const AllocationProblem& problem, const ShareProgram& program,
                               bool deadlines) {
  MilpModel model = program.base();
  for (std::size_t c = 0; c < program.classes(); ++c) {
    const auto members = static_cast<double>(program.members(c));
    for (const MilpTerm& term : program.Rate(c, members, problem.prices)) {
      model.AddObjective(term.column, term.coefficient);
    }
    const AllocationJob& job = program.job(c);
    if (deadlines && std::isfinite(job.time_left)) {
      const double needed = job.work_left / job.time_left;
      model.AddRow(program.Rate(c, 1 / needed), MilpSense::kAtLeast, 1);
    }
  }
  return SolveLinear(model, {.maximize = true});
}

}  // namespace

Allocation LeastMakespan(const AllocationProblem& problem) {
  const ShareProgram program(problem, KeyOf(problem, &AllocationJob::work_left));
  // Of the longest job, on the fastest type by itself: the unit of time.
  double longest = 0;
  for (std::size_t c = 0; c < program.classes(); ++c) {
    longest = std::max(longest, program.job(c).work_left / program.LargestRate(c));
  }
  MilpModel model = program.base();
  const int pace =
      model.AddColumn({.upper = solver::kMilpInfinity, .objective = 1, .integer = false});
  for (std::size_t c = 0; c < program.classes(); ++c) {
    std::vector<MilpTerm> terms = program.Rate(c, longest / program.job(c).work_left);
    terms.push_back({pace, -1});
    model.AddRow(terms, MilpSense::kAtLeast, 0);
  }
  const LinearSolution solution = SolveLinear(model, {.maximize = true});
  if (solution.values.empty()) {
    Allocation none = Isolated(problem);
    none.optimal = false;
    return none;
  }
  Allocation allocation = program.Expand(solution.values);
  allocation.optimal = solution.status == MilpStatus::kOptimal;
  allocation.objective = longest / solution.objective;
  return allocation;
}

ThroughputAllocation MostThroughput(const AllocationProblem& problem, bool deadlines) {
  std::vector<double> key;
  if (deadlines) {
    for (const AllocationJob& job : problem.jobs) {
      key.push_back(std::isfinite(job.time_left) ? job.work_left / job.time_left : 0);
    }
  }
  const bool overdue =
      deadlines && std::any_of(problem.jobs.begin(), problem.jobs.end(),
                               [](const AllocationJob& job) { return job.time_left <= 0; });
  const ShareProgram program(problem, key);
  ThroughputAllocation result{.deadlines_hold = !overdue};
  LinearSolution solution;
  if (!overdue) {
    solution = SolveThroughput(problem, program, deadlines);
  }
  if (overdue || (deadlines && solution.status == MilpStatus::kInfeasible)) {
    result.deadlines_hold = false;
    solution = SolveThroughput(problem, program, false);
  }
  if (solution.values.empty()) {
    result.allocation = Isolated(problem);
    result.allocation.optimal = false;
    return result;
  }
  result.allocation = program.Expand(solution.values);
  result.allocation.objective = solution.objective;
  result.allocation.optimal = solution.status == MilpStatus::kOptimal;
  return result;
}

}  // namespace trainyard::policies
