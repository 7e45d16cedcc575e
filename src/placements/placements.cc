// SPDX-License-Identifier: Apache-2.0
#include "placements/placements.h"

#include "model/slices.h"

namespace trainyard::placements {
namespace {

// The next larger count of free GPUs that some node has, or 0.
int NextCount(const FreeGpus& free, int count) {
  return count < free.largest_node() ? free.SmallestCount(count + 1) : 0;
}

Result<Components> MakeNothing(const Options& /*options*/, const ComponentContext& /*context*/) {
  return Components{};
}

NodeId Next(NodeId node) { return NodeAt(Index(node) + 1); }

}  // namespace

ComponentEntry CountEntry() {
  return {ComponentKind::kPlacement,
          "count",
          "counts GPUs cluster-wide, names none (simulation only)",
          {},
          MakeNothing};
}

ComponentEntry GandivaPlacementEntry() {
  return {ComponentKind::kPlacement,
          "gandiva",
          "the policy's own choice of GPUs (policy gandiva)",
          {},
          MakeNothing,
          {},
          {},
          true};
}

std::span<const ComponentEntry> Placements() {
  static const std::vector<ComponentEntry> kEntries =
      base::SortedEntries({TRAINYARD_PLACEMENTS(TRAINYARD_ENTRY)});
  return kEntries;
}

std::optional<NodeId> FirstNodeWith(const FreeGpus& free, int gpus, NodeId from) {
  std::optional<NodeId> first;
  for (int count = free.SmallestCount(gpus); count > 0; count = NextCount(free, count)) {
    const std::optional<NodeId> node = free.NodesWith(count).First(from);
    if (node && (!first || *node < *first)) {
      first = node;
    }
  }
  return first;
}

std::optional<NodeId> BestFittingNode(const FreeGpus& free, int gpus) {
  const int count = free.SmallestCount(gpus);
  return count == 0 ? std::nullopt : free.NodesWith(count).First();
}

std::optional<Slices> FewestNodes(const FreeGpus& free, int gpus) {
  Slices slices;
  int rest = gpus;
  for (int count = free.largest_node(); count > 0 && rest > 0; --count) {
    std::optional<NodeId> node = free.NodesWith(count).First();
    for (; node && rest >= count; node = free.NodesWith(count).First(Next(*node))) {
      slices.push_back({.node = *node, .gpus = free.gpus(*node)});
      rest -= count;
    }
    if (node && rest > 0) {  // this node has more than the rest: one with fewer will do
      const std::optional<NodeId> best = BestFittingNode(free, rest);
      const NodeId last = free.count(*best) < count ? *best : *node;
      slices.push_back({.node = last, .gpus = free.Lowest(last, rest)});
      rest = 0;
    }
  }
  if (rest > 0) {
    return std::nullopt;
  }
  model::SortByNode(slices);
  return slices;
}

}  // namespace trainyard::placements
