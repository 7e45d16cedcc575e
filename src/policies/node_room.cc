// SPDX-License-Identifier: Apache-2.0
#include "policies/node_room.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace trainyard::policies {

NodeRoom::NodeRoom(const Snapshot& snapshot) : largest_(snapshot.cluster->largest_node()) {
  const std::vector<NodeSpec>& nodes = snapshot.cluster->nodes;
  free_.reserve(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    free_.push_back(snapshot.up(NodeAt(i)) ? nodes[i].gpus : 0);
  }
  first_.assign(static_cast<std::size_t>(largest_) + 1, 0);
}

std::int64_t NodeRoom::free() const {
  return std::accumulate(free_.begin(), free_.end(), std::int64_t{0});
}

void NodeRoom::Take(const Slices& slices) {
  for (const Slice& slice : slices) {
    free_[Index(slice.node)] -= std::popcount(slice.gpus);
  }
}

std::size_t NodeRoom::FirstWith(int gpus) {
  std::size_t& node = first_[static_cast<std::size_t>(gpus)];  // free GPUs only become fewer
  while (node < free_.size() && free_[node] < gpus) {
    ++node;
  }
  return node;
}

bool NodeRoom::Add(int gpus) {
  if (gpus > largest_) {
    return AddAcross(gpus);
  }
  const std::size_t node = FirstWith(gpus);
  if (node < free_.size()) {
    free_[node] -= gpus;
  }
  return node < free_.size();
}

bool NodeRoom::AddAcross(int gpus) {
  if (largest_ == 0) {
    return false;
  }
  std::vector<std::size_t> whole;
  const auto wanted = static_cast<std::size_t>(gpus / largest_);
  for (std::size_t node = FirstWith(largest_); node < free_.size() && whole.size() < wanted;
       ++node) {
    if (free_[node] == largest_) {
      whole.push_back(node);
    }
  }
  if (whole.size() < wanted) {
    return false;
  }
  const int rest = gpus % largest_;
  std::size_t last = rest == 0 ? free_.size() : FirstWith(rest);
  while (rest > 0 && last < free_.size() &&
         (free_[last] < rest || std::binary_search(whole.begin(), whole.end(), last))) {
    ++last;
  }
  if (rest > 0) {
    if (last == free_.size()) {
      return false;
    }
    free_[last] -= rest;
  }
  for (const std::size_t node : whole) {
    free_[node] = 0;
  }
  return true;
}

}  // namespace trainyard::policies
