// SPDX-License-Identifier: Apache-2.0
// For policies that allocate at intervals: what has changed since, and how nothing is.
#pragma once

#include <cstdint>

#include "trainyard/plan.h"
#include "trainyard/snapshot.h"

namespace trainyard::policies {

// Another number where nodes, live jobs, what they ask for, hold or have reported are others
// (FNV-1a). Ages and the service of jobs do not count.
[[nodiscard]] std::uint64_t DigestOf(const Snapshot& snapshot);

// All jobs keep what they hold.
[[nodiscard]] Proposal ProposalToKeep(const JobTable& jobs);

}  // namespace trainyard::policies
