// SPDX-License-Identifier: Apache-2.0
#include "scheduler/queue/displacement.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "model/slices.h"

namespace trainyard::scheduler {

void EvictionIndex::MarkChanged(NodeId node) {
  if (!nodes_[Index(node)].changed) {
    nodes_[Index(node)].changed = true;
    changed_.push_back(Index(node));
  }
}

void EvictionIndex::Touch(const Grant& grant) {
  for (const Slice& slice : grant.slices) {
    MarkChanged(slice.node);
  }
}

void EvictionIndex::Put(JobId job, const Grant& grant, const Rank& rank) {
  if (grants_.size() <= Index(job)) {
    grants_.resize(std::max(grants_.size() * 2, Index(job) + 1));
  }
  grants_[Index(job)] = grant;
  for (const Slice& slice : grant.slices) {
    std::vector<Resident>& residents = nodes_[Index(slice.node)].residents;
    const auto place =
        std::find_if(residents.begin(), residents.end(),
                     [&rank](const Resident& resident) { return resident.rank < rank; });
    residents.insert(place, {.job = job, .gpus = std::popcount(slice.gpus), .rank = rank});
    MarkChanged(slice.node);
  }
}

void EvictionIndex::Remove(JobId job) {
  for (const Slice& slice : grant(job).slices) {
    const std::size_t removed =
        std::erase_if(nodes_[Index(slice.node)].residents,
                      [job](const Resident& resident) { return resident.job == job; });
    CHECK(removed == 1);
    MarkChanged(slice.node);
  }
}

void EvictionIndex::Refresh(Size& size, const DemandClass& of, std::size_t node,
                            const Packing& packing) const {
  const auto worse = [&size](std::size_t a, std::size_t b) {
    const Rank& x = *size.threshold[a];
    const Rank& y = *size.threshold[b];
    return y < x || (x == y && a < b);
  };
  const Rank* threshold = nullptr;
  int room = packing.free_gpus(NodeAt(node));
  const bool usable = packing.MayUse(of, NodeAt(node));
  for (const Resident& resident : nodes_[node].residents) {
    room += resident.gpus;
    if (usable && room >= of.gpus) {
      threshold = &resident.rank;
      break;
    }
  }
  std::optional<Rank>& known = size.threshold[node];
  if (threshold == nullptr) {
    if (known) {
      size.nodes.Erase(node, size.positions, worse);
      known.reset();
    }
    return;
  }
  if (known && *known == *threshold) {
    return;
  }
  const bool is_new = !known;
  known = *threshold;
  if (is_new) {
    size.nodes.Push(node, size.positions, worse);
  } else {
    size.nodes.Update(node, size.positions, worse);
  }
}

void EvictionIndex::Refresh(const Packing& packing) {
  for (const std::size_t node : changed_) {
    nodes_[node].changed = false;
    for (auto& [of, size] : sizes_) {
      Refresh(size, of, node, packing);
    }
  }
  changed_.clear();
}

EvictionIndex::Size& EvictionIndex::SizeOf(const DemandClass& of, const Packing& packing) {
  const auto [place, is_new] = sizes_.try_emplace(of);
  Size& size = place->second;
  if (is_new) {
    size.threshold.resize(nodes_.size());
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      Refresh(size, of, node, packing);
    }
  }
  return size;
}

std::optional<EvictionIndex::Choice> EvictionIndex::Find(const DemandClass& of, const Rank& limit,
                                                         const Packing& packing) {
  Refresh(packing);
  const Size& size = SizeOf(of, packing);
  if (size.nodes.empty() || !(limit < *size.threshold[size.nodes.top()])) {
    return std::nullopt;
  }
  Choice choice{.node = NodeAt(size.nodes.top()), .victims = {}};
  int room = packing.free_gpus(choice.node);
  for (const Resident& resident : nodes_[Index(choice.node)].residents) {
    if (room >= of.gpus) {
      break;
    }
    room += resident.gpus;
    choice.victims.push_back(resident.job);
  }
  return choice;
}

// ----------------------------------------------------------------------------- displacement

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
    if (job->node ? *job->node == node : model::LieOn(jobs_.grant(job->job).slices, node)) {
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

// GPUs that the job holds and a demand of the class may have.
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

void Displacement::ClearGain(const Passed& jobs) {
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
      ClearGain(passed);
      return {.grant = std::move(grant), .displaced = InTheWay(victims, packing)};
    }
  }
  ClearGain(passed);
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
    packing.Remove(jobs_.spec(worst->job), jobs_.grant(worst->job));
    outcome.grant = packing.TryAdd(*job.spec, {.gpus = job.spec->gpus}, nullptr);
  }
  return outcome;
}

// A grant for `job` if it fits once `victims` have lost theirs; otherwise nothing changes.
std::optional<Grant> Displacement::TakeFrom(const std::vector<JobId>& victims, const JobView& job,
                                            Packing& packing) const {
  for (const JobId victim : victims) {
    packing.Remove(jobs_.spec(victim), jobs_.grant(victim));
  }
  std::optional<Grant> grant = packing.TryAdd(*job.spec, {.gpus = job.spec->gpus}, job.grant);
  if (!grant) {
    for (const JobId victim : victims) {
      packing.Add(jobs_.spec(victim), jobs_.grant(victim));
    }
  }
  return grant;
}

// Victims (worst first, out of the packing) whose GPUs are not needed keep them; returns the
// others.
std::vector<JobId> Displacement::InTheWay(const std::vector<JobId>& victims,
                                          Packing& packing) const {
  std::vector<JobId> others;
  for (auto victim = victims.rbegin(); victim != victims.rend(); ++victim) {
    const Grant& held = jobs_.grant(*victim);
    if (packing.IsFree(jobs_.spec(*victim), held)) {
      packing.Add(jobs_.spec(*victim), held);
    } else {
      others.push_back(*victim);
    }
  }
  return others;
}

}  // namespace trainyard::scheduler
