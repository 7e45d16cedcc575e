// SPDX-License-Identifier: Apache-2.0
#include "placement/catalog.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/text.h"
#include "placement/placements.h"

namespace trainyard {
namespace {

// The next larger count of free GPUs that some node has, or 0.
int NextCount(const FreeGpus& free, int count) {
  return count < free.largest_node() ? free.SmallestCount(count + 1) : 0;
}

}  // namespace

std::span<const PlacementEntry> PlacementCatalog() {
  static const std::array kEntries{BuddyEntry(), ConsolidatedEntry(), CountEntry(),
                                   FirstFitEntry()};
  return kEntries;
}

Result<std::unique_ptr<Placement>> MakePlacement(const NamedOptions& named) {
  const std::span<const PlacementEntry> catalog = PlacementCatalog();
  const auto entry = std::find_if(catalog.begin(), catalog.end(),
                                  [&](const PlacementEntry& e) { return e.name == named.name; });
  if (entry == catalog.end()) {
    std::vector<std::string_view> names;
    for (const PlacementEntry& known : catalog) {
      names.push_back(known.name);
    }
    return InvalidArgument(UnknownName("placement", named.name, names));
  }
  const Result<Options> options =
      Options::Make(entry->options, named, "placement '" + named.name + "'");
  if (!options.ok()) {
    return options.error();
  }
  return entry->make(options.value());
}

std::uint64_t LowestGpus(std::uint64_t free, int count) {
  std::uint64_t taken = 0;
  for (int i = 0; i < count; ++i) {
    CHECK(free != 0);
    taken |= free & (~free + 1);
    free &= free - 1;
  }
  return taken;
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
