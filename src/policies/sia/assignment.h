// SPDX-License-Identifier: Apache-2.0
// Which job has which configuration (Sia, SOSP'23, section 3.4): an integer program over all jobs.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace trainyard::policies {

// One thing that a job may have.
struct AssignmentChoice {
  std::size_t kind = 0;  // of nodes
  int takes = 0;         // GPUs of that kind
  double cost = 0;       // of having it
};

struct AssignmentJob {
  std::vector<AssignmentChoice> choices;
  std::optional<std::size_t> pinned{};  // it has this one
};

struct AssignmentProblem {
  std::vector<int> capacity;  // GPUs by kind
  double unserved = 0;        // the cost of a job that has nothing
  bool maximise = false;      // costs are gains
  std::vector<AssignmentJob> jobs;
};

struct Assignment {
  std::vector<std::optional<std::size_t>> chosen;  // by job, of its choices
  double objective = 0;
  bool optimal = true;  // false: the bound of the search came first
};

// What an assignment costs in all. REQUIRES: as many as jobs.
[[nodiscard]] double ObjectiveOf(const AssignmentProblem& problem,
                                 std::span<const std::optional<std::size_t>> chosen);
// Whether every kind has the GPUs, and pinned jobs have their choices.
[[nodiscard]] bool Fits(const AssignmentProblem& problem,
                        std::span<const std::optional<std::size_t>> chosen);

// The cheapest assignment, by CBC, whose search ends after so many nodes of its tree, never after
// seconds; then it is the best that it has found. None: pinned jobs do not fit, or nothing was
// found by then. The same problem has the same answer.
[[nodiscard]] std::optional<Assignment> SolveAssignment(const AssignmentProblem& problem,
                                                        int node_limit);

}  // namespace trainyard::policies
