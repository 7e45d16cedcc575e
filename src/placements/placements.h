// SPDX-License-Identifier: Apache-2.0
// The placements of this folder: each has a file that defines its entry, and a line here; and what
// placements share.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/catalog_lookup.h"
#include "trainyard/component_entry.h"

namespace trainyard::placements {

// One line for each placement.
#define TRAINYARD_PLACEMENTS(X) \
  X(Buddy)                      \
  X(Consolidated)               \
  X(Count)                      \
  X(FirstFit)                   \
  X(GandivaPlacement)           \
  X(Scattered)                  \
  X(Synergy)

TRAINYARD_PLACEMENTS(TRAINYARD_DECLARE_ENTRY)

// Sorted by name.
[[nodiscard]] std::span<const ComponentEntry> Placements();

// What placement buddy chooses, under a name that lives on.
[[nodiscard]] std::unique_ptr<Placement> BuddyBlocks(std::string_view name);

// The first node at or after `from` with at least `gpus` free GPUs. O(GPUs per node).
[[nodiscard]] std::optional<NodeId> FirstNodeWith(const FreeGpus& free, int gpus,
                                                  NodeId from = NodeId{0});

// The node with the fewest free GPUs that still has `gpus` (best fit), the first of equals.
[[nodiscard]] std::optional<NodeId> BestFittingNode(const FreeGpus& free, int gpus);

// A gang on several nodes, as few as possible: the nodes with the most free GPUs first; the rest
// goes where it fits best. Nothing if not enough GPUs are free. REQUIRES: gpus >= 1. O(nodes used).
[[nodiscard]] std::optional<Slices> FewestNodes(const FreeGpus& free, int gpus);

}  // namespace trainyard::placements
