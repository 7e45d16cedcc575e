// SPDX-License-Identifier: Apache-2.0
#include "policies/torchloader/open_gpus.h"

#include <algorithm>
#include <bit>

#include "model/slices.h"

namespace trainyard::policies {

OpenGpus::OpenGpus(const Snapshot& snapshot) {
  const std::vector<NodeSpec>& nodes = snapshot.cluster->nodes;
  open_.reserve(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    open_.push_back(snapshot.up(NodeAt(i)) ? model::AllGpus(nodes[i].gpus) : 0);
  }
}

bool OpenGpus::AreOpen(const Slices& slices) const {
  return std::all_of(slices.begin(), slices.end(), [this](const Slice& slice) {
    return (slice.gpus & ~open_[Index(slice.node)]) == 0;
  });
}

void OpenGpus::Take(const Slices& slices) {
  for (const Slice& slice : slices) {
    open_[Index(slice.node)] &= ~slice.gpus;
  }
}

Slices OpenGpus::First(int gpus) const {
  Slices slices;
  for (std::size_t i = 0; i < open_.size() && gpus > 0; ++i) {
    const int here = std::min(gpus, std::popcount(open_[i]));
    if (here > 0) {
      slices.push_back({.node = NodeAt(i), .gpus = model::LowestGpus(open_[i], here)});
      gpus -= here;
    }
  }
  return gpus == 0 ? slices : Slices();
}

}  // namespace trainyard::policies
