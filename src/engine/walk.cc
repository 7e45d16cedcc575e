// SPDX-License-Identifier: Apache-2.0
#include "engine/walk.h"

#include <algorithm>

namespace trainyard {
namespace {

bool AlreadyBlocked(const Selection& selection, int gpus) {
  return std::any_of(selection.blocked.begin(), selection.blocked.end(),
                     [gpus](const Blocked& blocked) { return blocked.gpus == gpus; });
}

}  // namespace

Selection WalkDemands(std::span<const Demand> demands, const Walk& walk, const JobTable& jobs,
                      Packing& packing) {
  Selection selection{.complete = true};
  selection.placed.reserve(demands.size());
  bool stopped = false;
  for (const Demand& demand : demands) {
    if (AlreadyBlocked(selection, demand.gpus)) {
      continue;
    }
    const JobView view = jobs.at(demand.job);
    std::optional<Grant> grant;
    if (!stopped) {
      grant = packing.TryAdd(*view.spec, demand, walk.keep_running ? view.grant : nullptr);
    }
    if (grant) {
      selection.placed.push_back({demand.job, std::move(*grant)});
      continue;
    }
    const WaitReason reason = stopped ? WaitReason::kBehindHead : packing.WhyNot(demand.gpus);
    selection.blocked.push_back({demand.job, demand.gpus, reason});
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
  Selection placed =
      WalkDemands(LargestFirst(selection), {.keep_running = walk.keep_running}, jobs, packing);
  for (const Blocked& blocked : selection.blocked) {
    if (!AlreadyBlocked(placed, blocked.gpus)) {
      placed.blocked.push_back(blocked);
    }
  }
  return placed;
}

}  // namespace trainyard
