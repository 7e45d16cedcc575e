// SPDX-License-Identifier: Apache-2.0
// GPUs as bits: those of a node, and those of a grant.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/check.h"
#include "trainyard/cluster.h"
#include "trainyard/plan.h"

namespace trainyard::model {

// All GPUs of a node that has so many.
[[nodiscard]] constexpr std::uint64_t AllGpus(int count) {
  return count == 0 ? 0 : ~std::uint64_t{0} >> (kMaxGpusPerNode - count);
}

// The `count` lowest of the free GPUs of a node. REQUIRES: there are as many.
[[nodiscard]] inline std::uint64_t LowestGpus(std::uint64_t free, int count) {
  std::uint64_t taken = 0;
  for (int i = 0; i < count; ++i) {
    CHECK(free != 0);
    taken |= free & (~free + 1);
    free &= free - 1;
  }
  return taken;
}

// Calls `visit(node, gpu)` for every GPU of the slices.
template <typename Visit>
void ForEachGpu(const Slices& slices, Visit visit) {
  for (const Slice& slice : slices) {
    for (std::uint64_t rest = slice.gpus; rest != 0; rest &= rest - 1) {
      visit(slice.node, std::countr_zero(rest));
    }
  }
}

// Calls `visit(first, count)` for every run of neighbouring GPUs of a node.
template <typename Visit>
void ForEachRun(std::uint64_t gpus, Visit visit) {
  for (int at = 0; gpus != 0;) {
    const int skipped = std::countr_zero(gpus);
    gpus >>= static_cast<unsigned>(skipped);
    const int count = std::countr_one(gpus);
    visit(at + skipped, count);
    at += skipped + count;
    gpus = count == kMaxGpusPerNode ? 0 : gpus >> static_cast<unsigned>(count);
  }
}

// GPUs of all slices together.
[[nodiscard]] inline int CountGpus(const Slices& slices) {
  int count = 0;
  for (const Slice& slice : slices) {
    count += std::popcount(slice.gpus);
  }
  return count;
}

// Whether some of the slices lie on the node.
[[nodiscard]] inline bool LieOn(const Slices& slices, NodeId node) {
  return std::any_of(slices.begin(), slices.end(),
                     [node](const Slice& slice) { return slice.node == node; });
}

inline void SortByNode(Slices& slices) {
  std::sort(slices.begin(), slices.end(),
            [](const Slice& a, const Slice& b) { return a.node < b.node; });
}

// Slices without GPUs, of nodes that lend CPUs or memory, do not count beside others.
[[nodiscard]] inline bool SameGpus(const Slices& before, const Slices& after) {
  const auto lends = [](const Slice& slice) { return slice.gpus == 0; };
  if (std::all_of(before.begin(), before.end(), lends)) {  // on CPUs alone: the same nodes
    return std::equal(before.begin(), before.end(), after.begin(), after.end(),
                      [](const Slice& one, const Slice& other) {
                        return one.node == other.node && one.gpus == other.gpus;
                      });
  }
  auto a = before.begin();
  auto b = after.begin();
  for (;; ++a, ++b) {
    a = std::find_if_not(a, before.end(), lends);
    b = std::find_if_not(b, after.end(), lends);
    if (a == before.end() || b == after.end()) {
      return a == before.end() && b == after.end();
    }
    if (a->node != b->node || a->gpus != b->gpus) {
      return false;
    }
  }
}

}  // namespace trainyard::model
