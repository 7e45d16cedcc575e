// SPDX-License-Identifier: Apache-2.0
// One entry per placement file, and what placements share.
#pragma once

#include <cstdint>
#include <optional>

#include "placement/catalog.h"

namespace trainyard {

[[nodiscard]] PlacementEntry BuddyEntry();
[[nodiscard]] PlacementEntry ConsolidatedEntry();
[[nodiscard]] PlacementEntry FirstFitEntry();
[[nodiscard]] PlacementEntry ScatteredEntry();
[[nodiscard]] PlacementEntry SynergyEntry();

// The first node at or after `from` with at least `gpus` free GPUs. O(GPUs per node).
[[nodiscard]] std::optional<NodeId> FirstNodeWith(const FreeGpus& free, int gpus,
                                                  NodeId from = NodeId{0});

// The node with the fewest free GPUs that still has `gpus` (best fit), the first of equals.
[[nodiscard]] std::optional<NodeId> BestFittingNode(const FreeGpus& free, int gpus);

}  // namespace trainyard
