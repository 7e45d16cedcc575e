// SPDX-License-Identifier: Apache-2.0
// The outcome of a walk: who holds what from now on.
#pragma once

#include <vector>

#include "trainyard/plan.h"

namespace trainyard {

struct Placed {
  JobId job{};
  Grant grant{};
};

struct Selection {
  std::vector<Placed> placed;    // in walk order
  std::vector<JobId> dropped;    // held GPUs and no longer do; empty if `complete`
  std::vector<Blocked> blocked;  // per demand class
  bool complete = false;         // every job that is not in `placed` holds nothing
};

}  // namespace trainyard
