// SPDX-License-Identifier: Apache-2.0
#include "placement/placements.h"

namespace trainyard {
namespace {

// The next larger count of free GPUs that some node has, or 0.
int NextCount(const FreeGpus& free, int count) {
  return count < free.largest_node() ? free.SmallestCount(count + 1) : 0;
}

Result<Components> MakeNothing(const Options& /*options*/, const ComponentContext& /*context*/) {
  return Components{};
}

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
      SortedEntries({TRAINYARD_PLACEMENTS(TRAINYARD_ENTRY)});
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

}  // namespace trainyard
