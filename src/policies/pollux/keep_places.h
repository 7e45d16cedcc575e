// SPDX-License-Identifier: Apache-2.0
// Which nodes jobs are on does not matter to the search of allocations, but for what a move costs;
// jobs that need not move are left where they are.
#pragma once

#include "policies/pollux/allocation_search.h"

namespace trainyard::policies {

// An allocation that is no less fit than `chosen`, in which each job has as many GPUs: jobs with as
// many as they hold stay where they are as far as the others find places. A job that moves all the
// same has lost its place to others. REQUIRES: the base of the problem, and `chosen`, can be.
// O(jobs x nodes).
[[nodiscard]] AllocationMatrix KeepPlaces(const SearchProblem& problem,
                                          const AllocationMatrix& chosen);

}  // namespace trainyard::policies
