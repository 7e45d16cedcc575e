// SPDX-License-Identifier: Apache-2.0
#include "scheduler/displacement.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace trainyard {

Displacement::Outcome Displacement::MakeRoom(const JobView& job, TimePoint now,
                                             EvictionIndex* evictions, Packing& packing) {
  const DemandClass of = packing.ClassOf(*job.spec, job.spec->gpus);
  const std::optional<double> slope = index_.CommonSlope();
  if (evictions == nullptr || !slope || job.spec->gpus > packing.largest_node(of)) {
    return FromWorst(job, now, packing);
  }
  OrderIndex::Rank limit = index_.RankAt(job.id, now);
  limit.key[0] -= *slope * Micros(now);  // as running jobs are stored
  const std::optional<EvictionIndex::Choice> choice = evictions->Find(of, limit, packing);
  if (!choice) {
    return {};
  }
  std::optional<Grant> grant = TakeFrom(choice->victims, job, packing);
  if (!grant) {  // room, but not as the placement wants it
    return FromWorst(job, now, packing);
  }
  return {.grant = std::move(grant), .displaced = InTheWay(choice->victims, packing)};
}

std::vector<JobId> Displacement::OnNode(const Passed& jobs, NodeId node) const {
  std::vector<JobId> there;
  for (const OrderIndex::Running* job : jobs) {
    const auto is_there = [node](const Slice& slice) { return slice.node == node; };
    const auto lies_there = [&](const Slices& slices) {
      return std::any_of(slices.begin(), slices.end(), is_there);
    };
    if (job->node ? *job->node == node : lies_there(jobs_.grant(job->job).slices)) {
      there.push_back(job->job);
    }
  }
  return there;
}

// Adds the GPUs that evicting the job would free to each node's gain. Returns the first node that
// would then have enough free for the class.
std::optional<NodeId> Displacement::Gain(const OrderIndex::Running& job, const DemandClass& of,
                                         const Packing& packing) {
  const auto add = [&](NodeId node, int gain) {
    gain_[Index(node)] += gain;
    return packing.MayUse(of, node) && packing.free_gpus(node) + gain_[Index(node)] >= of.gpus;
  };
  if (job.node) {
    return add(*job.node, job.gpus) ? job.node : std::nullopt;
  }
  std::optional<NodeId> found;
  for (const Slice& slice : jobs_.grant(job.job).slices) {
    if (add(slice.node, std::popcount(slice.gpus)) && !found) {
      found = slice.node;
    }
  }
  return found;
}

// Those that the job holds and a demand of the class may have.
int Displacement::UsableGpus(const OrderIndex::Running& job, const DemandClass& of,
                             const Packing& packing) const {
  if (!packing.several_kinds()) {
    return job.gpus;
  }
  int gpus = 0;
  for (const Slice& slice : jobs_.grant(job.job).slices) {
    gpus += packing.MayUse(of, slice.node) ? std::popcount(slice.gpus) : 0;
  }
  return gpus;
}

void Displacement::ForgetGain(const Passed& jobs) {
  for (const OrderIndex::Running* job : jobs) {
    if (job->node) {
      gain_[Index(*job->node)] = 0;
      continue;
    }
    for (const Slice& slice : jobs_.grant(job->job).slices) {
      gain_[Index(slice.node)] = 0;
    }
  }
}

// Goes through the running jobs from the worst, as long as they rank below `job`, until evicting
// those of one node (for a gang that one node can hold) or all of them makes room. By count the
// outcome is that of a walk over all jobs: see docs/design/0001-engine-shape.md.
Displacement::Outcome Displacement::FromWorst(const JobView& job, TimePoint now, Packing& packing) {
  const DemandClass of = packing.ClassOf(*job.spec, job.spec->gpus);
  const bool one_node = packing.names_gpus() && of.gpus <= packing.largest_node(of);
  const OrderIndex::Rank rank = index_.RankAt(job.id, now);
  gain_.resize(packing.cluster().nodes.size(), 0);
  OrderIndex::FromWorst from_worst(index_, now);
  Passed passed;
  std::vector<JobId> victims;
  int free = packing.free_gpus(of);
  while (const OrderIndex::Running* worst = from_worst.Next(rank)) {
    const int usable = UsableGpus(*worst, of, packing);
    if (usable == 0) {
      continue;
    }
    passed.push_back(worst);
    free += usable;
    if (one_node) {
      const std::optional<NodeId> node = Gain(*worst, of, packing);
      if (!node) {
        continue;
      }
      victims = OnNode(passed, *node);
    } else {
      victims.push_back(worst->job);
      if (free < of.gpus) {
        continue;
      }
    }
    if (std::optional<Grant> grant = TakeFrom(victims, job, packing)) {
      ForgetGain(passed);
      return {.grant = std::move(grant), .displaced = InTheWay(victims, packing)};
    }
  }
  ForgetGain(passed);
  return {};
}

Displacement::Outcome Displacement::EvictTail(const JobView& job, TimePoint now,
                                              Packing& packing) const {
  OrderIndex::FromWorst from_worst(index_, now);
  const OrderIndex::Rank rank = index_.RankAt(job.id, now);
  Outcome outcome;
  while (!outcome.grant) {
    const OrderIndex::Running* worst = from_worst.Next(rank);
    if (worst == nullptr) {
      break;
    }
    outcome.displaced.push_back(worst->job);
    packing.Remove(jobs_.grant(worst->job));
    outcome.grant = packing.TryAdd(*job.spec, {.gpus = job.spec->gpus}, nullptr);
  }
  return outcome;
}

// A grant for `job` if it fits once `victims` have lost theirs; otherwise nothing changes.
std::optional<Grant> Displacement::TakeFrom(const std::vector<JobId>& victims, const JobView& job,
                                            Packing& packing) const {
  for (const JobId victim : victims) {
    packing.Remove(jobs_.grant(victim));
  }
  std::optional<Grant> grant = packing.TryAdd(*job.spec, {.gpus = job.spec->gpus}, job.grant);
  if (!grant) {
    for (const JobId victim : victims) {
      packing.Add(jobs_.grant(victim));
    }
  }
  return grant;
}

// Of `victims` (worst first, out of the packing) those that do not stand in the way keep their
// GPUs; returns the others.
std::vector<JobId> Displacement::InTheWay(const std::vector<JobId>& victims,
                                          Packing& packing) const {
  std::vector<JobId> others;
  for (auto victim = victims.rbegin(); victim != victims.rend(); ++victim) {
    const Grant& held = jobs_.grant(*victim);
    if (packing.IsFree(held)) {
      packing.Add(held);
    } else {
      others.push_back(*victim);
    }
  }
  return others;
}

}  // namespace trainyard
