// SPDX-License-Identifier: Apache-2.0
// The outcome of a walk: who holds what from now on.
#pragma once

#include <algorithm>
#include <vector>

#include "model/blocked.h"
#include "model/slices.h"
#include "scheduler/type_choices.h"
#include "trainyard/plan.h"

namespace trainyard {

// Whether the grants are the same GPUs with the same jobs beside it; what may differ is the share
// of the nodes' CPUs, memory and storage bandwidth.
[[nodiscard]] inline bool OnlyTuned(const Grant& before, const Grant& after) {
  return before.gpus == after.gpus && before.sharing == after.sharing &&
         before.group == after.group && before.running == after.running &&
         SameGpus(before.slices, after.slices);
}

struct Placed {
  JobId job{};
  Grant grant{};
  bool restart = false;  // a new attempt even if the grant is what the job holds
  Duration credit{0};    // see Demand
};

struct Selection {
  std::vector<Placed> placed;    // in walk order
  std::vector<JobId> dropped;    // held GPUs and no longer do; empty if `complete`
  std::vector<Blocked> blocked;  // per demand class
  bool complete = false;         // every job that is not in `placed` holds nothing

  // Whether a demand of the class has been blocked.
  [[nodiscard]] bool Blocks(const DemandClass& of) const {
    return std::any_of(blocked.begin(), blocked.end(), [&of](const Blocked& other) {
      return other.gpus == of.gpus && other.kind == of.kind;
    });
  }
  // The first of its demand class counts.
  void Block(const Blocked& demand) {
    if (!Blocks({.gpus = demand.gpus, .kind = demand.kind})) {
      blocked.push_back(demand);
    }
  }
};

}  // namespace trainyard
