// SPDX-License-Identifier: Apache-2.0
// For tests: clusters of nodes with so many GPUs each.
#pragma once

#include <vector>

#include "trainyard/cluster.h"

namespace trainyard {

inline Cluster Nodes(const std::vector<int>& gpus) {
  Cluster cluster;
  for (const int count : gpus) {
    cluster.nodes.push_back({.name = "n", .gpus = count});
  }
  return cluster;
}

}  // namespace trainyard
