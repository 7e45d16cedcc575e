// SPDX-License-Identifier: Apache-2.0
// Seeded failures of nodes, for the [[failures]] of a cluster file (docs/formats/cluster.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainyard/cluster.h"

namespace trainyard::trace {

struct FailureOptions {
  double mtbf_hours = 0;    // mean time in which a node is up, > 0
  double repair_hours = 0;  // mean time in which it is down, > 0
  double days = 0;          // failures that begin by then, > 0
  std::uint64_t seed = 0;
};

struct NodeFailure {
  std::string node;
  std::int64_t down = 0;  // seconds
  std::int64_t up = 0;    // > down
};

// Each node is up and down by turns, for exponential times in whole seconds, by a stream of its
// own: a further node changes nothing for the others. By time, then in the order of the nodes.
// REQUIRES: the options are in the ranges given above.
[[nodiscard]] std::vector<NodeFailure> GenerateFailures(const Cluster& cluster,
                                                        const FailureOptions& options);

// As tables of a cluster file.
[[nodiscard]] std::string FailuresToml(const std::vector<NodeFailure>& failures);

}  // namespace trainyard::trace
