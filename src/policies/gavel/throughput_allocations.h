// SPDX-License-Identifier: Apache-2.0
// Allocations of Gavel (OSDI'20, section 4) by work done: makespan and sum of throughput. For a
// makespan leave out jobs whose rates are all 0. Pure functions of the problem.
#pragma once

#include <span>

#include "policies/gavel/allocation_problem.h"

namespace trainyard::policies {

// Section 4.2: the earliest possible time by which all jobs have ended. Objective: seconds.
[[nodiscard]] Allocation LeastMakespan(const AllocationProblem& problem);

// Section 4.2: the largest sum of rates, each over the price of its type. With `deadlines` every
// job that has one gets the rate that it needs; if that cannot be, nobody is given anything for it.
// Objective: the sum.
struct ThroughputAllocation {
  Allocation allocation;
  bool deadlines_hold = true;
};
[[nodiscard]] ThroughputAllocation MostThroughput(const AllocationProblem& problem, bool deadlines);

}  // namespace trainyard::policies
