// SPDX-License-Identifier: Apache-2.0
#include "policies/sia/configurations.h"

#include <algorithm>

namespace trainyard::policies {

std::vector<NodeKind> KindsOf(const Snapshot& snapshot, const model::NodeClasses& classes) {
  std::vector<NodeKind> kinds;
  const std::vector<NodeSpec>& nodes = snapshot.cluster->nodes;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const NodeId node = NodeAt(i);
    const std::size_t of = classes.of(node);
    auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const NodeKind& one) {
      return one.node_class == of && one.node_gpus == nodes[i].gpus;
    });
    if (kind == kinds.end()) {
      kinds.push_back(
          {.node_class = of, .type = classes.types().of(node), .node_gpus = nodes[i].gpus});
      kind = std::prev(kinds.end());
    }
    if (snapshot.up(node)) {
      kind->nodes.push_back(node);
    }
  }
  return kinds;
}

std::vector<Configuration> ConfigurationsOf(std::span<const NodeKind> kinds) {
  std::vector<Configuration> configurations;
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    const int node_gpus = kinds[kind].node_gpus;
    const int nodes = static_cast<int>(kinds[kind].nodes.size());
    if (nodes == 0) {
      continue;
    }
    const int within = std::min(node_gpus, kMostConfiguredGpus);
    for (int gpus = 1; gpus < within; gpus *= 2) {
      configurations.push_back({.kind = kind, .nodes = 1, .gpus = gpus});
    }
    for (int n = 1; n <= nodes && n * node_gpus <= kMostConfiguredGpus; ++n) {
      configurations.push_back({.kind = kind, .nodes = n, .gpus = n * node_gpus});
    }
  }
  return configurations;
}

}  // namespace trainyard::policies
