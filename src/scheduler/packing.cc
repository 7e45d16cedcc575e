// SPDX-License-Identifier: Apache-2.0
#include "scheduler/packing.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <iterator>
#include <string>
#include <utility>

#include "base/check.h"
#include "model/slices.h"

namespace trainyard::scheduler {
namespace {

// Placement::Choose: free GPUs in node order. How many they are the engine looks at. O(slices).
bool KeepsContract(const Slices& slices, const FreeGpus& free) {
  const NodeId* last = nullptr;
  for (const Slice& slice : slices) {
    if (Index(slice.node) >= free.cluster().nodes.size() ||
        (last != nullptr && slice.node <= *last) ||
        (free.gpus(slice.node) & slice.gpus) != slice.gpus) {
      return false;
    }
    last = &slice.node;
  }
  return true;
}

}  // namespace

Packing::Packing(const Cluster& cluster)
    : names_gpus_(false),
      placement_(nullptr),
      data_(nullptr),
      choices_(nullptr),
      free_(cluster),
      all_free_(free_) {}

Packing::Packing(const Cluster& cluster, const Placement* placement, const DataLocality* data,
                 NodeChoices* choices)
    : names_gpus_(true),
      placement_(placement),
      data_(data),
      choices_(choices),
      free_(cluster, data),
      all_free_(free_) {}

std::optional<Slices> Packing::Find(const JobSpec& job, Demand&& demand, const Grant* former,
                                    model::NodeClassSet but) {
  if (!demand.slices.empty()) {
    return free_.AreFree(demand.slices) ? std::optional(std::move(demand.slices)) : std::nullopt;
  }
  if (former != nullptr && former->gpus == demand.gpus && free_.AreFree(former->slices)) {
    return former->slices;
  }
  return choices_ != nullptr && choices_->several() ? ChooseByType(job, demand, but)
                                                    : Choose(free_, job, demand);
}

// As if nothing were free on nodes that the job avoids.
std::optional<Slices> Packing::Choose(const FreeGpus& free, const JobSpec& job,
                                      const Demand& demand) const {
  if (!job.traits || job.traits->avoided.empty()) {
    return ChooseAmong(free, job, demand);
  }
  FreeGpus others = free;
  for (const NodeId node : job.traits->avoided) {
    if (others.count(node) > 0) {
      others.Take({{.node = node, .gpus = others.gpus(node)}});
    }
  }
  return ChooseAmong(others, job, demand);
}

bool Packing::MayUse(const NodeChoices::Choice& choice, NodeId node) const {
  return choices_->classes().Has(choice.all, node) &&
         !std::binary_search(choice.avoided.begin(), choice.avoided.end(), node);
}

int Packing::free_gpus(const DemandClass& of) { return CountFor(of, &Free::now, free_); }

bool Packing::CanBeMet(const DemandClass& of) {
  return of.gpus <= CountFor(of, &Free::all, all_free_);
}

// The GPUs that such a demand may have: of `whole`, or of the part with its GPU types.
int Packing::CountFor(const DemandClass& of, FreeGpus Free::*part, const FreeGpus& whole) {
  if (!several_kinds()) {
    return whole.total();
  }
  const NodeChoices::Choice choice = choices_->Of(of.kind);
  const FreeGpus& free = choices_->several() ? Of(choice.all).*part : whole;
  int total = free.total();
  for (const NodeId node : choice.avoided) {
    total -= free.count(node);
  }
  return total;
}

std::optional<Slices> Packing::ChooseAmong(const FreeGpus& free, const JobSpec& job,
                                           const Demand& demand) const {
  if (placement_ == nullptr || demand.gpus > free.total()) {
    return std::nullopt;
  }
  std::optional<Slices> chosen = placement_->Choose(free, job, demand);
  if (chosen && !KeepsContract(*chosen, free)) {
    std::fprintf(stderr,
                 "placement '%s' gives job %s GPUs that are not free, or not in node order\n",
                 std::string(placement_->name()).c_str(), job.name.c_str());
    CHECK(KeepsContract(*chosen, free));
  }
  return chosen;
}

bool Packing::IsMixed(const Slices& slices) const {
  const model::GpuTypes& types = choices_->classes().types();
  return std::any_of(slices.begin(), slices.end(), [&](const Slice& slice) {
    return types.of(slice.node) != types.of(slices.front().node);
  });
}

// On the fastest types with room. Of equally fast ones the placement chooses as if they were one,
// but not GPUs of several if one of them has room; of types that differ only where none has, and
// then of as few of the fastest as have room together.
std::optional<Slices> Packing::ChooseByType(const JobSpec& job, const Demand& demand,
                                            model::NodeClassSet but) {
  const model::NodeClasses& classes = choices_->classes();
  NodeChoices::Choice choice = choices_->Of(choices_->ClassOf(job, demand.gpus).kind);
  if (but != 0) {
    for (model::NodeClassSet& pool : choice.pools) {
      pool &= ~but;
    }
    std::erase(choice.pools, model::NodeClassSet{0});
  }
  for (const model::NodeClassSet pool : choice.pools) {
    std::optional<Slices> chosen = Choose(Of(pool).now, job, demand);
    if (chosen && !IsMixed(*chosen)) {
      return chosen;
    }
    std::optional<Slices> pure;
    const model::GpuTypeSet types = classes.TypesOf(pool);
    if (std::has_single_bit(types)) {
      continue;
    }
    model::ForEachOf(types, [&](std::size_t type) {
      if (!pure) {
        pure = Choose(Of(pool & classes.OfType(type)).now, job, demand);
      }
    });
    if (pure) {
      return pure;
    }
  }
  model::NodeClassSet fastest = 0;
  for (const model::NodeClassSet pool : choice.pools) {
    fastest |= pool;
    if (std::optional<Slices> chosen = Choose(Of(fastest).now, job, demand)) {
      return chosen;
    }
  }
  return std::nullopt;
}

const Packing::Free& Packing::Of(model::NodeClassSet classes) {
  const auto known = by_class_.find(classes);
  if (known != by_class_.end()) {
    return known->second;
  }
  const std::vector<NodeSpec>& nodes = cluster().nodes;
  std::vector<bool> part(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    part[i] = choices_->classes().Has(classes, NodeAt(i));
  }
  Free free{.now = FreeGpus(cluster(), data_, part), .all = {}};
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    free.now.SetUp(NodeAt(i), free_.up(NodeAt(i)));
  }
  const auto as_in = [&](FreeGpus& part_of, const FreeGpus& whole) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (part[i] && free_.up(NodeAt(i))) {
        Resources taken = part_of.resources(NodeAt(i));
        taken -= whole.resources(NodeAt(i));
        part_of.Take({{.node = NodeAt(i),
                       .gpus = part_of.gpus(NodeAt(i)) & ~whole.gpus(NodeAt(i)),
                       .soft = taken}});
      }
    }
  };
  as_in(free.now, all_free_);
  free.all = free.now;
  as_in(free.now, free_);
  return by_class_.emplace(classes, std::move(free)).first->second;
}

std::optional<Grant> Packing::TryAdd(const JobSpec& job, Demand&& demand, const Grant* former,
                                     model::NodeClassSet but) {
  Grant grant{.gpus = demand.gpus, .sharing = demand.sharing, .running = demand.running};
  if (demand.sharing == Sharing::kCollocated) {
    grant.slices = std::move(demand.slices);  // collocated jobs are in no other's way
    return grant;
  }
  if (demand.gpus > free_.total()) {
    return std::nullopt;
  }
  if (demand.gpus > 0 && names_gpus()) {
    std::optional<Slices> slices = Find(job, std::move(demand), former, but);
    if (!slices) {
      return std::nullopt;
    }
    grant.slices = std::move(*slices);
  }
  Add(grant);
  return grant;
}

std::optional<NodeId> Packing::Overcommitted() const {
  const std::vector<NodeSpec>& nodes = cluster().nodes;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Resources& left = free_.resources(NodeAt(i));
    if ((nodes[i].capacity.milli_cpus > 0 && left.milli_cpus < 0) ||
        (nodes[i].capacity.memory_mib > 0 && left.memory_mib < 0)) {
      return NodeAt(i);
    }
  }
  return std::nullopt;
}

void Packing::Take(const Slices& slices) {
  free_.Take(slices);
  for (auto& [classes, free] : by_class_) {
    free.now.Take(slices);
  }
}

void Packing::Return(const Slices& slices) {
  free_.Return(slices);
  for (auto& [classes, free] : by_class_) {
    free.now.Return(slices);
  }
}

void Packing::Add(const Grant& grant) {
  if (names_gpus()) {
    Take(grant.slices);
  } else {
    free_.Take(grant.gpus);
  }
}

void Packing::Remove(const Grant& grant) {
  if (names_gpus()) {
    Return(grant.slices);
  } else {
    free_.Return(grant.gpus);
  }
}

void Packing::Replace(const Slices& before, const Slices& after) {
  if (before != after) {
    Return(before);
    Take(after);
  }
}

void Packing::SetUp(NodeId node, bool up) {
  free_.SetUp(node, up);
  all_free_.SetUp(node, up);
  for (auto& [classes, free] : by_class_) {
    free.now.SetUp(node, up);
    free.all.SetUp(node, up);
  }
}

Grant Packing::OnNodesUp(const Slices& slices) const {
  Grant up;
  std::copy_if(slices.begin(), slices.end(), std::back_inserter(up.slices),
               [this](const Slice& slice) { return free_.up(slice.node); });
  up.gpus = model::CountGpus(up.slices);
  return up;
}

void Packing::Reserve(const Slices& slices) {
  const Grant up = OnNodesUp(slices);
  Add(up);
  if (!names_gpus()) {
    return all_free_.Take(up.gpus);
  }
  all_free_.Take(up.slices);
  for (auto& [classes, free] : by_class_) {
    free.all.Take(up.slices);
  }
}

void Packing::Unreserve(const Slices& slices) {
  const Grant up = OnNodesUp(slices);
  Remove(up);
  if (!names_gpus()) {
    return all_free_.Return(up.gpus);
  }
  all_free_.Return(up.slices);
  for (auto& [classes, free] : by_class_) {
    free.all.Return(up.slices);
  }
}

bool Packing::IsFree(const Grant& grant) const {
  return names_gpus() ? free_.AreFree(grant.slices) : grant.gpus <= free_.total();
}

Grant Packing::FreePartOf(const Grant& grant) const {
  Grant part;
  for (const Slice& slice : grant.slices) {
    if (const std::uint64_t gpus = slice.gpus & free_.gpus(slice.node); gpus != 0) {
      part.slices.push_back({.node = slice.node, .gpus = gpus});
    }
  }
  part.gpus = model::CountGpus(part.slices);
  return part;
}

void Packing::Clear() {
  free_ = all_free_;
  for (auto& [classes, free] : by_class_) {
    free.now = free.all;
  }
}

}  // namespace trainyard::scheduler
