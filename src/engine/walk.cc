// SPDX-License-Identifier: Apache-2.0
#include "engine/walk.h"

#include <algorithm>
#include <utility>

namespace trainyard {
namespace {

bool AlreadyBlocked(const Selection& selection, int gpus) {
  return std::any_of(selection.blocked.begin(), selection.blocked.end(),
                     [gpus](const Blocked& blocked) { return blocked.gpus == gpus; });
}

}  // namespace

Selection WalkDemands(std::span<Demand> demands, const Walk& walk, const JobTable& jobs,
                      Packing& packing) {
  Selection selection{.complete = true};
  selection.placed.reserve(demands.size());
  bool stopped = false;
  for (Demand& demand : demands) {
    const JobId job = demand.job;
    const int gpus = demand.gpus;
    if (AlreadyBlocked(selection, gpus)) {
      continue;
    }
    std::optional<Grant> grant;
    if (!stopped) {
      const Grant& held = jobs.grant(job);
      const bool keeps = walk.keep_running && held.gpus > 0;
      grant = packing.TryAdd(jobs.spec(job), std::move(demand), keeps ? &held : nullptr);
    }
    if (grant) {
      selection.placed.push_back({job, std::move(*grant)});
      continue;
    }
    const WaitReason reason = stopped ? WaitReason::kBehindHead : packing.WhyNot(gpus);
    selection.blocked.push_back({job, gpus, reason});
    stopped = stopped || walk.misfit == Misfit::kStop;
  }
  return selection;
}

std::vector<Demand> LargestFirst(const Selection& selection) {
  std::vector<Demand> demands;
  demands.reserve(selection.placed.size());
  for (const Placed& placed : selection.placed) {
    demands.push_back({.job = placed.job, .gpus = placed.grant.gpus});
  }
  std::stable_sort(demands.begin(), demands.end(),
                   [](const Demand& a, const Demand& b) { return a.gpus > b.gpus; });
  return demands;
}

Selection PlaceSelected(const Selection& selection, const Walk& walk, const JobTable& jobs,
                        Packing& packing) {
  packing.Clear();
  std::vector<Demand> demands = LargestFirst(selection);
  Selection placed = WalkDemands(demands, {.keep_running = walk.keep_running}, jobs, packing);
  for (const Blocked& blocked : selection.blocked) {
    if (!AlreadyBlocked(placed, blocked.gpus)) {
      placed.blocked.push_back(blocked);
    }
  }
  return placed;
}

}  // namespace trainyard
