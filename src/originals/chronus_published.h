// SPDX-License-Identifier: Apache-2.0
// Chronus as its simulator was published, and as ElasticFlow took it over as a baseline: leases on
// a grid of whole time units, work that is told by the declared duration. Reference: 1-9, 11.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/chronus/chronus.h"
#include "policies/chronus/lease_planner.h"
#include "trainyard/component.h"

namespace trainyard::originals {

// What the program calls the class of a job.
enum class LeaseRank : std::int8_t {
  kHopeless = -1,  // its deadline cannot be met any more
  kAccepted = 0,
  kUnaccepted = 1,
  kBestEffort = 2,
};

struct LeaseStanding {
  JobId job{};
  LeaseRank rank{};
  bool refused = false;  // did not pass the check at admission
};

// The jobs that were live at the last decision and admitted by then. For tests.
// REQUIRES: a memory of this policy.
[[nodiscard]] std::vector<LeaseStanding> StandingsOf(const Memory& memory);

}  // namespace trainyard::originals
