// SPDX-License-Identifier: Apache-2.0
#include "scheduler/eviction_index.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace trainyard {

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
  for (const Slice& slice : grant.slices) {
    std::vector<Resident>& residents = nodes_[Index(slice.node)].residents;
    const auto place =
        std::find_if(residents.begin(), residents.end(),
                     [&rank](const Resident& resident) { return resident.rank < rank; });
    residents.insert(place, {.job = job, .gpus = std::popcount(slice.gpus), .rank = rank});
    MarkChanged(slice.node);
  }
}

void EvictionIndex::Remove(JobId job, const Grant& grant) {
  for (const Slice& slice : grant.slices) {
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

}  // namespace trainyard
