// SPDX-License-Identifier: Apache-2.0
#include "placement/fewest_nodes.h"

#include <algorithm>

#include "model/slices.h"
#include "placement/placements.h"

namespace trainyard {
namespace {

NodeId Next(NodeId node) { return NodeAt(Index(node) + 1); }

// The node with the fewest free GPUs, but at least `gpus`, among those with fewer than `count`;
// else `otherwise`. None of them has been used yet.
NodeId LeastWith(const FreeGpus& free, int gpus, int count, NodeId otherwise) {
  for (int fewer = gpus; fewer < count; ++fewer) {
    if (const std::optional<NodeId> node = free.NodesWith(fewer).First()) {
      return *node;
    }
  }
  return otherwise;
}

}  // namespace

std::optional<Slices> FewestNodes(const FreeGpus& free, int gpus) {
  Slices slices;
  int rest = gpus;
  for (int count = free.largest_node(); count > 0 && rest > 0; --count) {
    std::optional<NodeId> node = free.NodesWith(count).First();
    for (; node && rest >= count; node = free.NodesWith(count).First(Next(*node))) {
      slices.push_back({.node = *node, .gpus = free.gpus(*node)});
      rest -= count;
    }
    if (node && rest > 0) {  // this node has more than the rest: the smallest such one will do
      const NodeId last = LeastWith(free, rest, count, *node);
      slices.push_back({.node = last, .gpus = LowestGpus(free.gpus(last), rest)});
      rest = 0;
    }
  }
  if (rest > 0) {
    return std::nullopt;
  }
  std::sort(slices.begin(), slices.end(),
            [](const Slice& a, const Slice& b) { return a.node < b.node; });
  return slices;
}

}  // namespace trainyard
