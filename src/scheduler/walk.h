// SPDX-License-Identifier: Apache-2.0
// The walk over a list of demands: the one place where demands meet the packing.
#pragma once

#include <span>
#include <vector>

#include "scheduler/packing.h"
#include "scheduler/selection.h"
#include "trainyard/snapshot.h"

namespace trainyard {

// Adds the demands in order to `packing`; a demand class that failed once is not tried again.
// Sets Selection::complete. The slices of the demands are moved away. O(demands).
[[nodiscard]] Selection WalkDemands(std::span<Demand> demands, const Walk& walk,
                                    const JobTable& jobs, Packing& packing);

// Those from `first` on; equal ones stay in order. The demands themselves move only once.
void SortLargestFirst(std::vector<Demand>& demands, std::vector<Demand>::iterator first);
// What the jobs of `selection` hold, as demands, the largest first.
[[nodiscard]] std::vector<Demand> LargestFirst(const Selection& selection);

// Places the jobs of `selection` anew, the largest first: the second pass of Walk::count_first.
// What does not fit is dropped and blocked. `packing` is cleared first.
[[nodiscard]] Selection PlaceSelected(const Selection& selection, const Walk& walk,
                                      const JobTable& jobs, Packing& packing);

}  // namespace trainyard
