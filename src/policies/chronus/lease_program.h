// SPDX-License-Identifier: Apache-2.0
// Leases by an integer program (Chronus, SoCC'21).
#pragma once

#include <optional>

#include "policies/chronus/lease_planner.h"

namespace trainyard::policies {

// The integer program alone: the optimal plan; of several the one whose choice of deadlines and of
// jobs for the first lease is preferred by the rule above, whatever the solver finds first (as long
// as options.most_solves last). The later leases are the solver's. Nothing if there is no plan for
// all jobs, or none within the limits; not optimal if the limit stopped the search.
[[nodiscard]] std::optional<LeasePlan> SolveLeaseProgram(const LeaseProblem& problem,
                                                         const LeasePlannerOptions& options);

}  // namespace trainyard::policies
