// SPDX-License-Identifier: Apache-2.0
// Allocations of Gavel (OSDI'20) that need no program: isolated shares, FIFO by throughput, equal
// units; and rates without types. Pure functions of the problem.
#pragma once

#include <span>

#include "policies/gavel/allocation_problem.h"

namespace trainyard::policies {

// The rates that a policy which knows no types counts with: of a job's rates the largest, on each
// type on which it runs. Pairs likewise.
[[nodiscard]] AllocationProblem WithoutTypes(AllocationProblem problem);

// Where no rate depends on the type all types are as good: each job's time is divided over them as
// their GPUs are. Where a job does not run on some type, or jobs share GPUs, the allocation itself.
[[nodiscard]] Allocation SpreadOverTypes(const AllocationProblem& problem, Allocation allocation);

// The isolated share itself. No objective.
[[nodiscard]] Allocation Isolated(const AllocationProblem& problem);

// Section 4.2 (FIFO): in their order, each job gets the type on which it is fastest of those with
// enough GPUs left; the first without one is the last that is looked at. With pairs (appendix): of
// those that are left each, in order, joins the placed job with which both together do most,
// measured by their rates alone, if that is more than half as much again; likewise.
// `first_is_lost`: as the published program has it: where GPUs are left over, the job that did not
// fit joins nobody, and those behind it are looked at.
[[nodiscard]] Allocation FifoByThroughput(const AllocationProblem& problem,
                                          bool first_is_lost = false);

// Gandiva's packing (Xiao et al., OSDI'18) as Gavel has it: the jobs that `partners` names run in
// pairs; all pairs and the jobs that are left divide the cluster equally. By job: its partner, or
// itself.
[[nodiscard]] Allocation EqualUnits(const AllocationProblem& problem,
                                    std::span<const std::size_t> partners);

}  // namespace trainyard::policies
