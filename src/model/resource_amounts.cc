// SPDX-License-Identifier: Apache-2.0
#include "model/resource_amounts.h"

#include <algorithm>

#include "base/check.h"

namespace trainyard::model {

Resources ProportionalShare(const NodeSpec& node, std::int64_t gpus) {
  CHECK(gpus >= 0 && node.gpus > 0);
  return {.milli_cpus = node.capacity.milli_cpus * gpus / node.gpus,
          .memory_mib = node.capacity.memory_mib * gpus / node.gpus,
          .storage_kbps = node.capacity.storage_kbps * gpus / node.gpus};
}

const NodeSpec& TypicalNode(const Cluster& cluster) {
  CHECK(!cluster.nodes.empty());
  return *std::max_element(cluster.nodes.begin(), cluster.nodes.end(),
                           [](const NodeSpec& a, const NodeSpec& b) { return a.gpus < b.gpus; });
}

}  // namespace trainyard::model
