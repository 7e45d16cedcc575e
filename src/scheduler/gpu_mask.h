// SPDX-License-Identifier: Apache-2.0
// A set of GPUs of a cluster.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "trainyard/plan.h"

namespace trainyard::scheduler {

// Slices on nodes that there are not are passed over: demands may not have been checked yet.
class GpuMask {
 public:
  explicit GpuMask(std::size_t nodes) : gpus_(nodes, 0) {}
  void Add(const Slices& slices) {
    for (const Slice& slice : slices) {
      if (Index(slice.node) < gpus_.size()) {
        gpus_[Index(slice.node)] |= slice.gpus;
      }
    }
  }
  [[nodiscard]] int CountOf(const Slices& slices) const {
    int count = 0;
    for (const Slice& slice : slices) {
      count += Index(slice.node) < gpus_.size()
                   ? std::popcount(gpus_[Index(slice.node)] & slice.gpus)
                   : 0;
    }
    return count;
  }
  [[nodiscard]] bool HasAnyOf(const Slices& slices) const { return CountOf(slices) > 0; }

 private:
  std::vector<std::uint64_t> gpus_;  // by node, bit i for GPU i
};

}  // namespace trainyard::scheduler
