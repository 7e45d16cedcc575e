// SPDX-License-Identifier: Apache-2.0
// A gang on several nodes, as few as possible.
#pragma once

#include <optional>

#include "trainyard/free_gpus.h"
#include "trainyard/resources.h"

namespace trainyard {

// The nodes with the most free GPUs first; the rest goes where it fits best. Nothing if not enough
// GPUs are free. REQUIRES: gpus >= 1. O(nodes used).
[[nodiscard]] std::optional<Slices> FewestNodes(const FreeGpus& free, int gpus);

}  // namespace trainyard
