// SPDX-License-Identifier: Apache-2.0
// Arithmetic on amounts of CPU, memory and storage bandwidth, and the part of a node's that comes
// with its GPUs.
#pragma once

#include <algorithm>
#include <cstdint>

#include "trainyard/cluster.h"
#include "trainyard/resources.h"

namespace trainyard::model {

// Applies `of` to each resource of the arguments.
template <typename Of, typename... More>
[[nodiscard]] Resources ForEachResource(Of of, const Resources& first, const More&... more) {
  return {.milli_cpus = of(first.milli_cpus, more.milli_cpus...),
          .memory_mib = of(first.memory_mib, more.memory_mib...),
          .storage_kbps = of(first.storage_kbps, more.storage_kbps...)};
}

[[nodiscard]] inline Resources Times(const Resources& one, std::int64_t count) {
  return ForEachResource([count](std::int64_t amount) { return amount * count; }, one);
}
// Rounded down. REQUIRES: count > 0.
[[nodiscard]] inline Resources DividedBy(const Resources& all, std::int64_t count) {
  return count == 1 ? all
                    : ForEachResource([count](std::int64_t amount) { return amount / count; }, all);
}
// How often `one` is in `room`, up to `most`.
[[nodiscard]] inline int TimesIn(const Resources& room, const Resources& one, int most) {
  std::int64_t times = most;
  (void)ForEachResource(
      [&times](std::int64_t left, std::int64_t amount) {
        times = amount > 0 ? std::min(times, left < 0 ? 0 : left / amount) : times;
        return amount;
      },
      room, one);
  return static_cast<int>(times);
}

[[nodiscard]] inline Resources Least(const Resources& a, const Resources& b) {
  return ForEachResource([](std::int64_t x, std::int64_t y) { return std::min(x, y); }, a, b);
}
[[nodiscard]] inline Resources Most(const Resources& a, const Resources& b) {
  return ForEachResource([](std::int64_t x, std::int64_t y) { return std::max(x, y); }, a, b);
}
// a - b, but not below 0.
[[nodiscard]] inline Resources Beyond(const Resources& a, const Resources& b) {
  return ForEachResource(
      [](std::int64_t x, std::int64_t y) { return std::max<std::int64_t>(0, x - y); }, a, b);
}

// Whether what is left of the node covers the amounts. Of what it does not state it has enough.
[[nodiscard]] inline bool HasRoom(const NodeSpec& node, const Resources& left,
                                  const Resources& amounts) {
  bool has_room = true;
  (void)ForEachResource(
      [&has_room](std::int64_t stated, std::int64_t of_it, std::int64_t amount) {
        has_room = has_room && (stated == 0 || of_it >= amount);
        return amount;
      },
      node.capacity, left, amounts);
  return has_room;
}

// What `gpus` of the node's GPUs bring along, rounded down. Amounts that the node does not state
// are 0. REQUIRES: gpus >= 0, and the node has GPUs.
[[nodiscard]] Resources ProportionalShare(const NodeSpec& node, std::int64_t gpus);

// The node that demands are measured against: the largest of the cluster, the first of equals.
// REQUIRES: the cluster has nodes.
[[nodiscard]] const NodeSpec& TypicalNode(const Cluster& cluster);

}  // namespace trainyard::model
