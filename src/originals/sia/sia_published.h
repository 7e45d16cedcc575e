// SPDX-License-Identifier: Apache-2.0
// The integer program of the published Sia, for policy and tests (docs/originals.md).
#pragma once

#include "policies/sia/assignment.h"
#include "policies/sia/sia.h"
#include "trainyard/snapshot.h"

namespace trainyard::originals {

// Of one round, its ties left as they are: a job for each live one, in their order, with a choice
// for each configuration. REQUIRES: `memory` is that of a decision with this snapshot.
[[nodiscard]] policies::AssignmentProblem ProblemAsPublished(const Snapshot& snapshot,
                                                             const policies::SiaSettings& settings,
                                                             const policies::SiaMemory& memory);

}  // namespace trainyard::originals
