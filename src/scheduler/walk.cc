// SPDX-License-Identifier: Apache-2.0
#include "scheduler/walk.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>

namespace trainyard::scheduler {
namespace {

DemandClass ClassOf(const Demand& demand, const JobTable& jobs, const Packing& packing) {
  return packing.several_kinds() ? packing.ClassOf(jobs.spec(demand.job), demand.gpus)
                                 : DemandClass{.gpus = demand.gpus};
}

// The last running demand of [begin, end); begin - 1: none runs.
std::size_t LastRunning(const std::vector<bool>& runs, std::size_t begin, std::size_t end) {
  while (end > begin && !runs[end - 1]) {
    --end;
  }
  return end > begin ? end - 1 : begin - 1;
}

// The walk of Misfit::kEvictTail. REQUIRES: nothing is placed.
Selection WalkEvictingTail(std::span<const Demand> demands, const JobTable& jobs,
                           Packing& packing) {
  std::vector<bool> runs(demands.size());
  for (std::size_t i = 0; i < demands.size(); ++i) {
    const Grant& held = jobs.grant(demands[i].job);
    runs[i] = held.gpus > 0;
    if (runs[i]) {
      packing.Add(jobs.spec(demands[i].job), held);
    }
  }
  Selection selection{.complete = true};
  std::size_t victim = demands.size();
  bool stopped = false;
  for (std::size_t i = 0; i < demands.size(); ++i) {
    const Demand& demand = demands[i];
    if (runs[i]) {
      selection.placed.push_back({demand.job, jobs.grant(demand.job)});
      continue;
    }
    std::optional<Grant> grant;
    const DemandClass of = ClassOf(demand, jobs, packing);
    while (!stopped && packing.CanBeMet(of) &&
           !(grant = packing.TryAdd(jobs.spec(demand.job), Demand(demand), nullptr))) {
      victim = LastRunning(runs, i + 1, victim);
      stopped = victim == i;
      if (!stopped) {
        packing.Remove(jobs.spec(demands[victim].job), jobs.grant(demands[victim].job));
        runs[victim] = false;
      }
    }
    if (grant) {
      selection.placed.push_back({demand.job, std::move(*grant)});
    } else if (!selection.Blocks(of)) {
      const bool first = selection.blocked.empty();
      selection.blocked.push_back({demand.job, demand.gpus,
                                   first ? packing.WhyNot(of) : model::WaitReason::kBehindHead,
                                   of.kind});
    }
  }
  return selection;
}

}  // namespace

void AddGroup(Selection& selection, Placed placed, const std::vector<JobId>& partners) {
  if (!partners.empty()) {
    placed.grant.group = {placed.job};
    placed.grant.group.insert(placed.grant.group.end(), partners.begin(), partners.end());
  }
  for (const JobId partner : partners) {
    selection.placed.push_back({partner, placed.grant, placed.restart});
  }
  selection.placed.push_back(std::move(placed));
}

Selection WalkDemands(std::span<Demand> demands, const Walk& walk, const JobTable& jobs,
                      Packing& packing) {
  if (walk.misfit == Misfit::kEvictTail) {
    return WalkEvictingTail(demands, jobs, packing);
  }
  Selection selection{.complete = true};
  selection.placed.reserve(demands.size());
  model::NodeClassSet awaited = 0;  // by those whom nobody may pass
  for (Demand& demand : demands) {
    const JobId job = demand.job;
    const DemandClass of = ClassOf(demand, jobs, packing);
    if (selection.Blocks(of)) {
      continue;
    }
    std::optional<Grant> grant;
    Placed placed{.job = job, .restart = demand.restart, .credit = demand.credit};
    const std::vector<JobId> partners = std::move(demand.partners);  // one place for all
    const model::NodeClassSet nodes = packing.NodesFor(of);
    if (nodes == 0 || (nodes & ~awaited) != 0) {
      const Grant& held = jobs.grant(job);
      const bool keeps = walk.keep_running && held.gpus > 0;
      grant = packing.TryAdd(jobs.spec(job), std::move(demand), keeps ? &held : nullptr, awaited);
    }
    if (grant) {
      placed.grant = std::move(*grant);
      AddGroup(selection, std::move(placed), partners);
      continue;
    }
    selection.blocked.push_back(
        {job, of.gpus, (nodes & awaited) != 0 ? model::WaitReason::kBehindHead : packing.WhyNot(of),
         of.kind});
    if (walk.misfit != Misfit::kSkip && packing.CanBeMet(of)) {
      awaited |= nodes;
    }
  }
  return selection;
}

void PutRunningFirst(std::vector<Demand>& demands, const JobTable& jobs) {
  std::stable_partition(demands.begin(), demands.end(),
                        [&jobs](const Demand& demand) { return jobs.grant(demand.job).gpus > 0; });
}

void SortLargestFirst(std::vector<Demand>& demands, std::vector<Demand>::iterator first) {
  const auto asks_for_more = [](const Demand& a, const Demand& b) { return a.gpus > b.gpus; };
  if (std::is_sorted(first, demands.end(), asks_for_more)) {
    return;
  }
  // GPUs, descending, above the position.
  std::vector<std::uint64_t> order;
  order.reserve(demands.size());
  for (auto demand = first; demand != demands.end(); ++demand) {
    const auto gpus = static_cast<std::uint64_t>(std::numeric_limits<int>::max() - demand->gpus);
    order.push_back(gpus << 32U | order.size());
  }
  std::sort(order.begin(), order.end());
  std::vector<Demand> sorted;
  sorted.reserve(demands.size());
  std::move(demands.begin(), first, std::back_inserter(sorted));
  for (const std::uint64_t entry : order) {
    sorted.push_back(std::move(first[static_cast<std::ptrdiff_t>(entry & 0xffffffffU)]));
  }
  demands = std::move(sorted);
}

std::vector<Demand> LargestFirst(const Selection& selection) {
  std::vector<Demand> demands;
  demands.reserve(selection.placed.size());
  for (const Placed& placed : selection.placed) {
    demands.push_back({.job = placed.job, .gpus = placed.grant.gpus});
  }
  SortLargestFirst(demands, demands.begin());
  return demands;
}

Selection PlaceSelected(const Selection& selection, const Walk& walk, const JobTable& jobs,
                        Packing& packing) {
  packing.Clear();
  std::vector<Demand> demands = LargestFirst(selection);
  Selection placed = WalkDemands(demands, {.keep_running = walk.keep_running}, jobs, packing);
  for (const model::Blocked& blocked : selection.blocked) {
    placed.Block(blocked);
  }
  return placed;
}

}  // namespace trainyard::scheduler
