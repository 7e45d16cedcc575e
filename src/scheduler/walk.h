// SPDX-License-Identifier: Apache-2.0
// The walk over a list of demands, the one place where demands meet the packing, and its outcome:
// which job holds what from now on.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "model/slices.h"
#include "scheduler/packing.h"
#include "trainyard/plan.h"
#include "trainyard/snapshot.h"

namespace trainyard::scheduler {

// Whether the grants are the same GPUs with the same jobs beside it; what may differ is the share
// of the nodes' CPUs, memory and storage bandwidth.
[[nodiscard]] inline bool OnlyTuned(const Grant& before, const Grant& after) {
  return before.gpus == after.gpus && before.sharing == after.sharing &&
         before.group == after.group && before.running == after.running &&
         model::SameGpus(before.slices, after.slices);
}

struct Placed {
  JobId job{};
  Grant grant{};
  bool restart = false;  // a new attempt even if the grant is what the job holds
  Duration credit{0};    // see Demand
};

struct Selection {
  std::vector<Placed> placed;           // in walk order
  std::vector<JobId> dropped;           // held GPUs and no longer do; empty if `complete`
  std::vector<model::Blocked> blocked;  // per demand class
  bool complete = false;                // every job that is not in `placed` holds nothing

  // Whether a demand of the class has been blocked.
  [[nodiscard]] bool Blocks(const DemandClass& of) const {
    return std::any_of(blocked.begin(), blocked.end(), [&of](const model::Blocked& other) {
      return other.gpus == of.gpus && other.kind == of.kind;
    });
  }
  // The first of its demand class counts.
  void Block(const model::Blocked& demand) {
    if (!Blocks({.gpus = demand.gpus, .kind = demand.kind})) {
      blocked.push_back(demand);
    }
  }
};

// The job and its partners hold the same GPUs.
void AddGroup(Selection& selection, Placed placed, const std::vector<JobId>& partners);

// Adds the demands in order to `packing`; a demand class that failed once is not tried again.
// Sets Selection::complete. The slices of the demands are moved away. O(demands).
[[nodiscard]] Selection WalkDemands(std::span<Demand> demands, const Walk& walk,
                                    const JobTable& jobs, Packing& packing);

// Running jobs first; both parts stay in their order.
void PutRunningFirst(std::vector<Demand>& demands, const JobTable& jobs);
// Sorts the demands from `first` on by GPUs, descending; equal ones stay in order.
void SortLargestFirst(std::vector<Demand>& demands, std::vector<Demand>::iterator first);
// What the jobs of `selection` hold, as demands, the largest first.
[[nodiscard]] std::vector<Demand> LargestFirst(const Selection& selection);

// Places the jobs of `selection` anew, the largest first: the second pass of Walk::count_first.
// What does not fit is dropped and blocked. `packing` is cleared first.
[[nodiscard]] Selection PlaceSelected(const Selection& selection, const Walk& walk,
                                      const JobTable& jobs, Packing& packing);

}  // namespace trainyard::scheduler
