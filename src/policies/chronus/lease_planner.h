// SPDX-License-Identifier: Apache-2.0
// Which accepted jobs hold their GPUs in which leases, so that their deadlines are worth most and
// the lease that starts now is filled, or left to others (Chronus, SoCC'21).
//   maximize  sum(value of the chosen deadlines) +- GPUs given out in the first lease / capacity
//   subject to: each job has exactly one deadline and as many leases before it as it needs; the
//   GPUs of a lease suffice.
// There are many optimal plans. Which one is chosen is a rule and not the solver's luck: the
// tightest deadlines, then in the first lease the jobs with the earliest deadline, then the
// earlier job; later leases are filled evenly, the later of equals first.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "policies/chronus/lease_packing.h"

namespace trainyard::policies {

struct LeaseDeadline {
  int window = 0;    // leases that end by then, the first one included
  double value = 0;  // of meeting it
};

struct LeaseJob {
  int gpus = 1;
  int need = 1;                          // leases; >= 1
  std::vector<LeaseDeadline> deadlines;  // windows ascend, values fall
  // A plan made before, for what happens if no new one is found; empty: none.
  int known_deadline = 0;
  Leases known;
};

struct LeaseProblem {
  std::vector<LeaseJob> jobs;
  LeaseCapacity capacity;  // from the first lease on; not empty
  bool fill_first = true;  // as many GPUs in the first lease as possible, or as few
};

struct PlannedLeases {
  int deadline = -1;  // the chosen one; -1: no leases could be found for the job
  Leases leases;
};

struct LeasePlan {
  std::vector<PlannedLeases> jobs;  // as in the problem
  double objective = 0;
  bool optimal = false;
  bool solved = false;  // by the integer program: the bounds did not prove it
};

enum class SolverUse : std::uint8_t {
  kNever,
  kRescue,   // where no plan for all can be constructed
  kImprove,  // and where the bounds do not prove the one that is
};

struct LeasePlannerOptions {
  SolverUse solver = SolverUse::kImprove;
  int node_limit = 500;
  int most_columns = 2'000;  // of the integer program; what is larger is not tried
  int most_solves = 40;      // of an integer program, until the rest is left to the solver
};

// A plan that the bounds prove to be optimal, mostly; else the better of that and of the integer
// program's; else the fall-back: known plans stay, and the others follow one by
// one, those with large values first. A job that finds no leases then is left out.
[[nodiscard]] LeasePlan PlanLeases(const LeaseProblem& problem,
                                   const LeasePlannerOptions& options = {});

}  // namespace trainyard::policies
