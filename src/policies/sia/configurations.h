// SPDX-License-Identifier: Apache-2.0
// Sia (SOSP'23), section 3.3: on how many nodes and GPUs of which type a job may be. Few
// configurations for each type, so that which job gets which is a small program, and so that what
// it chooses fits on nodes without splitting jobs.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "model/node_classes.h"
#include "trainyard/ids.h"
#include "trainyard/snapshot.h"

namespace trainyard::policies {

// The most GPUs of a job.
inline constexpr int kMostConfiguredGpus = 64;

// Nodes that are alike: with as many GPUs, of one class (GPU type and partitions).
struct NodeKind {
  std::size_t node_class = 0;  // model::NodeClasses
  std::size_t type = 0;        // model::GpuTypes
  int node_gpus = 0;
  std::vector<NodeId> nodes{};  // those that are up, ascending

  [[nodiscard]] int gpus() const { return node_gpus * static_cast<int>(nodes.size()); }
};

// In the order of their first nodes, down or up.
[[nodiscard]] std::vector<NodeKind> KindsOf(const Snapshot& snapshot,
                                            const model::NodeClasses& classes);

struct Configuration {
  std::size_t kind = 0;
  int nodes = 0;
  int gpus = 0;

  friend bool operator==(const Configuration&, const Configuration&) = default;
};

// Within a node the powers of two and all its GPUs, beyond it whole nodes, as far as there are
// some; of each kind in turn, ascending.
[[nodiscard]] std::vector<Configuration> ConfigurationsOf(std::span<const NodeKind> kinds);

}  // namespace trainyard::policies
