// SPDX-License-Identifier: Apache-2.0
#include "placements/soft_index.h"

#include <gtest/gtest.h>

#include <random>

namespace trainyard::placements {
namespace {

Cluster SomeNodes(std::size_t nodes) {
  Cluster cluster;
  for (std::size_t i = 0; i < nodes; ++i) {
    cluster.nodes.push_back(
        {.name = "n", .gpus = 4, .capacity = {.milli_cpus = 8000, .memory_mib = 4000}});
  }
  return cluster;
}

Slice Take(std::size_t node, std::uint64_t gpus, std::int64_t cpus, std::int64_t memory) {
  return {.node = NodeAt(node), .gpus = gpus, .soft = {.milli_cpus = cpus, .memory_mib = memory}};
}

TEST(SoftIndexTest, FindsTheFirstNodeWithEnoughOfEverything) {
  const Cluster cluster = SomeNodes(5);
  FreeGpus free(cluster);
  SoftIndex index(free, true);
  free.Take({Take(0, 0b1, 7000, 0), Take(1, 0b1, 0, 3500), Take(2, 0b1111, 0, 0)});
  for (std::size_t i = 0; i < 3; ++i) {
    index.Update(NodeAt(i));
  }
  const Resources both{.milli_cpus = 2000, .memory_mib = 1000};
  EXPECT_EQ(index.First(both), NodeAt(3));
  EXPECT_EQ(index.First({.milli_cpus = 2000}), NodeAt(1));
  EXPECT_EQ(index.First(both, NodeAt(4)), NodeAt(4));
  EXPECT_EQ(index.First(both, NodeAt(5)), std::nullopt);
  EXPECT_EQ(index.FirstWith(3, {.memory_mib = 1000}), NodeAt(0));
  EXPECT_EQ(index.FirstWith(3, both), std::nullopt);
  EXPECT_EQ(index.First({.milli_cpus = 8001}), std::nullopt);
}

TEST(SoftIndexTest, WhatANodeDoesNotStateItHasWithoutLimit) {
  Cluster cluster = SomeNodes(1);
  cluster.nodes[0].capacity = {};
  const FreeGpus free(cluster);
  EXPECT_EQ(SoftIndex(free, false).First({.milli_cpus = 1'000'000, .memory_mib = 1'000'000}),
            NodeAt(0));
}

// Against a scan, while GPUs come and go.
TEST(SoftIndexTest, AgreesWithAScan) {
  std::mt19937 engine(7);
  const auto random = [&engine] { return static_cast<std::int64_t>(engine() & 0x7fffffffU); };
  for (const std::size_t nodes : {1U, 2U, 3U, 7U, 8U, 33U}) {
    const Cluster cluster = SomeNodes(nodes);
    FreeGpus free(cluster);
    SoftIndex index(free, true);
    std::vector<Slice> taken;
    for (int step = 0; step < 300; ++step) {
      const auto node = static_cast<std::size_t>(random()) % nodes;
      if (!taken.empty() && random() % 2 == 0) {
        free.Return({taken.back()});
        index.Update(taken.back().node);
        taken.pop_back();
      } else if (free.count(NodeAt(node)) > 0) {
        const std::uint64_t gpus = free.gpus(NodeAt(node));
        taken.push_back(Take(node, gpus & (~gpus + 1), random() % 3000, random() % 1500));
        free.Take({taken.back()});
        index.Update(NodeAt(node));
      }
      const Resources least{.milli_cpus = random() % 8000, .memory_mib = random() % 4000};
      const auto from = static_cast<std::size_t>(random()) % nodes;
      const int count = 1 + static_cast<int>(random() % 4);
      std::optional<NodeId> any;
      std::optional<NodeId> exact;
      for (std::size_t i = nodes; i-- > from;) {
        if (free.count(NodeAt(i)) > 0 && free.resources(NodeAt(i)).Covers(least)) {
          any = NodeAt(i);
          exact = free.count(NodeAt(i)) == count ? NodeAt(i) : exact;
        }
      }
      ASSERT_EQ(index.First(least, NodeAt(from)), any);
      ASSERT_EQ(index.FirstWith(count, least, NodeAt(from)), exact);
    }
  }
}

}  // namespace
}  // namespace trainyard::placements
