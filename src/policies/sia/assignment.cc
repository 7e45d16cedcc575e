// SPDX-License-Identifier: Apache-2.0
#include "policies/sia/assignment.h"

#include "base/check.h"
#include "solver/milp.h"

namespace trainyard::policies {

double ObjectiveOf(const AssignmentProblem& problem,
                   std::span<const std::optional<std::size_t>> chosen) {
  CHECK(chosen.size() == problem.jobs.size());
  double sum = 0;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    sum += chosen[i] ? problem.jobs[i].choices[*chosen[i]].cost : problem.unserved;
  }
  return sum;
}

bool Fits(const AssignmentProblem& problem, std::span<const std::optional<std::size_t>> chosen) {
  CHECK(chosen.size() == problem.jobs.size());
  std::vector<int> left = problem.capacity;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (problem.jobs[i].pinned && problem.jobs[i].pinned != chosen[i]) {
      return false;
    }
    if (chosen[i]) {
      const AssignmentChoice& choice = problem.jobs[i].choices[*chosen[i]];
      left[choice.kind] -= choice.takes;
      if (left[choice.kind] < 0) {
        return false;
      }
    }
  }
  return true;
}

std::optional<Assignment> SolveAssignment(const AssignmentProblem& problem, int node_limit) {
  solver::MilpModel model;
  std::vector<std::vector<solver::MilpTerm>> of_kind(problem.capacity.size());
  for (const AssignmentJob& job : problem.jobs) {
    std::vector<solver::MilpTerm> one;
    one.reserve(job.choices.size());
    for (std::size_t i = 0; i < job.choices.size(); ++i) {
      const AssignmentChoice& choice = job.choices[i];
      const int column = model.AddColumn(
          {.lower = job.pinned == i ? 1.0 : 0.0, .objective = choice.cost - problem.unserved});
      one.push_back({.column = column, .coefficient = 1});
      of_kind[choice.kind].push_back(
          {.column = column, .coefficient = static_cast<double>(choice.takes)});
    }
    if (!one.empty()) {
      model.AddRow(one, solver::MilpSense::kAtMost, 1);
    }
  }
  for (std::size_t kind = 0; kind < of_kind.size(); ++kind) {
    if (!of_kind[kind].empty()) {
      model.AddRow(of_kind[kind], solver::MilpSense::kAtMost, problem.capacity[kind]);
    }
  }
  const solver::MilpSolution solution =
      solver::SolveMilp(model, {.maximize = problem.maximise, .node_limit = node_limit});
  if (!solution.has_values()) {
    return std::nullopt;
  }
  Assignment assignment{.chosen = std::vector<std::optional<std::size_t>>(problem.jobs.size())};
  std::size_t column = 0;
  for (std::size_t i = 0; i < problem.jobs.size(); ++i) {
    for (std::size_t choice = 0; choice < problem.jobs[i].choices.size(); ++choice) {
      // No columns at all: there is nothing to choose.
      if (!solution.values.empty() && solution.values[column++] > 0.5) {
        assignment.chosen[i] = choice;
      }
    }
  }
  assignment.objective = ObjectiveOf(problem, assignment.chosen);
  assignment.optimal = solution.status == solver::MilpStatus::kOptimal;
  return assignment;
}

}  // namespace trainyard::policies
