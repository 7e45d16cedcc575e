// SPDX-License-Identifier: Apache-2.0
// The part of a node's CPUs, memory and storage that comes with its GPUs.
#pragma once

#include "trainyard/cluster.h"
#include "trainyard/resources.h"

namespace trainyard {

// What `gpus` of the node's GPUs bring along, rounded down. Amounts that the node does not state
// are 0. REQUIRES: gpus >= 0, and the node has GPUs.
[[nodiscard]] Resources ProportionalShare(const NodeSpec& node, std::int64_t gpus);

// The node that demands are measured against: the largest of the cluster, the first of equals.
// REQUIRES: the cluster has nodes.
[[nodiscard]] const NodeSpec& TypicalNode(const Cluster& cluster);

}  // namespace trainyard
