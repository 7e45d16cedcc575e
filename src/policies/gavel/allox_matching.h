// SPDX-License-Identifier: Apache-2.0
// AlloX (EuroSys'20), as Gavel has it. Pure functions of the problem.
#pragma once

#include <span>

#include "policies/gavel/allocation_problem.h"

namespace trainyard::policies {

// AlloX (Le et al., EuroSys'20) as Gavel has it: every job asks for one GPU. `placed`: jobs that
// keep theirs, with its type; the others in their order. They are matched with (GPU, place from the
// end of its queue) so that the sum of completion times is least; the first in each queue runs.
// Objective: the cost of the matching.
struct PlacedJob {
  std::size_t job = 0;
  std::size_t type = 0;
};
[[nodiscard]] Allocation Allox(const AllocationProblem& problem, std::span<const PlacedJob> placed);

}  // namespace trainyard::policies
