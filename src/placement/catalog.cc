// SPDX-License-Identifier: Apache-2.0
#include "placement/catalog.h"

#include <array>

#include "base/catalog_lookup.h"
#include "base/check.h"
#include "placement/placements.h"

namespace trainyard {
namespace {

// The next larger count of free GPUs that some node has, or 0.
int NextCount(const FreeGpus& free, int count) {
  return count < free.largest_node() ? free.SmallestCount(count + 1) : 0;
}

PlacementEntry CountEntry() {
  return {"count",
          "counts GPUs cluster-wide, names none (simulation only)",
          {},
          [](const Options& /*options*/) { return PlacementComponent(); }};
}

PlacementEntry GandivaEntry() {
  return {"gandiva",
          "the policy's own choice of GPUs (policy gandiva)",
          {},
          [](const Options& /*options*/) { return PlacementComponent{.by_policy = true}; }};
}

}  // namespace

std::span<const PlacementEntry> PlacementCatalog() {
  static const std::array kEntries{BuddyEntry(),    ConsolidatedEntry(), CountEntry(),
                                   FirstFitEntry(), GandivaEntry(),      ScatteredEntry(),
                                   SynergyEntry()};
  return kEntries;
}

Result<PlacementComponent> MakePlacement(const NamedOptions& named) {
  const auto found = LookUp(PlacementCatalog(), named, "placement");
  if (!found.ok()) {
    return found.error();
  }
  return found.value().first->make(found.value().second);
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
