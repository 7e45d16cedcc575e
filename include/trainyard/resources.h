// SPDX-License-Identifier: Apache-2.0
// What a node has and what a job is given.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "trainyard/ids.h"

namespace trainyard {

// What a node has beside GPUs, in integers, so that sums never drift.
struct Resources {
  std::int64_t milli_cpus = 0;
  std::int64_t memory_mib = 0;
  std::int64_t storage_kbps = 0;  // bandwidth of its storage, kB/s

  friend bool operator==(const Resources&, const Resources&) = default;
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
  [[nodiscard]] bool Covers(const Resources& other) const {
    return milli_cpus >= other.milli_cpus && memory_mib >= other.memory_mib &&
           storage_kbps >= other.storage_kbps;
  }
};

// The part of a grant on one node. Bit i of `gpus` is GPU i of the node; a node has at most 64.
struct Slice {
  NodeId node{};
  std::uint64_t gpus = 0;
  Resources soft{};
  int loader_workers = 0;  // data-loading processes for these GPUs

  friend bool operator==(const Slice&, const Slice&) = default;
};
using Slices = std::vector<Slice>;

// Shares of a whole cluster; 0 of what nobody states.
struct ResourceShares {
  double gpus = 0;
  double cpus = 0;
  double memory = 0;

  [[nodiscard]] double sum() const { return gpus + cpus + memory; }
  [[nodiscard]] double dominant() const { return std::max({gpus, cpus, memory}); }
  ResourceShares& operator+=(const ResourceShares& other) {
    gpus += other.gpus;
    cpus += other.cpus;
    memory += other.memory;
    return *this;
  }
};

}  // namespace trainyard
