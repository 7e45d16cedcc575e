// SPDX-License-Identifier: Apache-2.0
#include "engine/packing.h"

#include <utility>

namespace trainyard {

Packing::Packing(const Cluster& cluster, const Placement* placement)
    : placement_(placement), free_(cluster), all_free_(free_) {}

std::optional<Slices> Packing::Find(const JobSpec& job, Demand demand, const Grant* former) const {
  if (!demand.slices.empty()) {
    return free_.AreFree(demand.slices) ? std::optional(std::move(demand.slices)) : std::nullopt;
  }
  if (former != nullptr && former->gpus == demand.gpus && free_.AreFree(former->slices)) {
    return former->slices;
  }
  std::optional<Slices> chosen = placement_->Choose(free_, job, demand.gpus);
  if (!chosen && demand.may_split) {
    chosen = placement_->ChooseSplit(free_, job, demand.gpus);
  }
  return chosen;
}

std::optional<Grant> Packing::TryAdd(const JobSpec& job, Demand demand, const Grant* former) {
  if (demand.gpus > free_.total()) {
    return std::nullopt;
  }
  Grant grant{.gpus = demand.gpus, .slices = {}};
  if (demand.gpus > 0 && names_gpus()) {
    std::optional<Slices> slices = Find(job, std::move(demand), former);
    if (!slices) {
      return std::nullopt;
    }
    grant.slices = std::move(*slices);
  }
  Add(grant);
  return grant;
}

std::optional<std::vector<Slices>> Packing::TryAddAll(std::span<const Demand> demands,
                                                      Memory* memory) {
  std::optional<std::vector<Slices>> slices = placement_->PlaceAll(free_, demands, memory);
  if (slices) {
    for (const Slices& of_one : *slices) {
      free_.Take(of_one);
    }
  }
  return slices;
}

void Packing::Add(const Grant& grant) {
  if (names_gpus()) {
    free_.Take(grant.slices);
  } else {
    free_.Take(grant.gpus);
  }
}

void Packing::Remove(const Grant& grant) {
  if (names_gpus()) {
    free_.Return(grant.slices);
  } else {
    free_.Return(grant.gpus);
  }
}

bool Packing::IsFree(const Grant& grant) const {
  return names_gpus() ? free_.AreFree(grant.slices) : grant.gpus <= free_.total();
}

void Packing::Clear() { free_ = all_free_; }

}  // namespace trainyard
