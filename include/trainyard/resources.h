// SPDX-License-Identifier: Apache-2.0
// What a node has and what a job is given: GPUs by name, as bits, and amounts of CPU, memory and
// storage bandwidth. All are plain values; a copy is independent.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "trainyard/ids.h"

namespace trainyard {

// What a node has beside GPUs, or a job is given of it. Integers, so that sums never drift. An
// amount may become negative where more is subtracted than is there.
struct Resources {
  std::int64_t milli_cpus = 0;    // 1000 are one CPU core
  std::int64_t memory_mib = 0;    // MiB
  std::int64_t storage_kbps = 0;  // bandwidth of the node's storage, kB/s (1000 bytes per second)

  friend bool operator==(const Resources&, const Resources&) = default;
  // Amount by amount.
  Resources& operator+=(const Resources& other) {
    milli_cpus += other.milli_cpus;
    memory_mib += other.memory_mib;
    storage_kbps += other.storage_kbps;
    return *this;
  }
  Resources& operator-=(const Resources& other) {
    milli_cpus -= other.milli_cpus;
    memory_mib -= other.memory_mib;
    storage_kbps -= other.storage_kbps;
    return *this;
  }
  // Whether each of the three amounts is at least that of `other`.
  [[nodiscard]] bool Covers(const Resources& other) const {
    return milli_cpus >= other.milli_cpus && memory_mib >= other.memory_mib &&
           storage_kbps >= other.storage_kbps;
  }
};

// The part of a grant on one node. The number of GPUs is std::popcount(gpus).
struct Slice {
  NodeId node{};
  std::uint64_t gpus = 0;  // bit i is GPU i of the node; a node has at most kMaxGpusPerNode, 64
  // What the job's workers on this node get together, beside their GPUs; zero: nobody has said. Set
  // by placements, packers and tunings; a live job is told, nothing enforces it.
  Resources soft{};
  int loader_workers = 0;  // data-loading processes for these GPUs; 0: nobody has said

  friend bool operator==(const Slice&, const Slice&) = default;
};
// The GPUs of one gang: a slice for each node, in ascending order of nodes, each node once.
using Slices = std::vector<Slice>;

// Shares of a whole cluster, nodes that are down included: fractions, usually 0 to 1, and 0 of what
// the job or the cluster does not state. For dominant resource fairness (DRF, NSDI'11) and Tetris
// (SIGCOMM'14).
struct ResourceShares {
  double gpus = 0;
  double cpus = 0;
  double memory = 0;

  // By which Tetris, as in Synergy's simulator, weighs the time that a job still needs.
  [[nodiscard]] double sum() const { return gpus + cpus + memory; }
  // The dominant share (DRF, section 4.1): the largest of the three.
  [[nodiscard]] double dominant() const { return std::max({gpus, cpus, memory}); }
  ResourceShares& operator+=(const ResourceShares& other) {
    gpus += other.gpus;
    cpus += other.cpus;
    memory += other.memory;
    return *this;
  }
};

}  // namespace trainyard
