// SPDX-License-Identifier: Apache-2.0
#include "model/resource_amounts.h"

#include <gtest/gtest.h>

namespace trainyard::model {
namespace {

TEST(ProportionalShareTest, IsTheNodesPartRoundedDown) {
  const NodeSpec node{.gpus = 8,
                      .capacity = {.milli_cpus = 24000, .memory_mib = 1001, .storage_kbps = 0}};
  EXPECT_EQ(ProportionalShare(node, 3),
            (Resources{.milli_cpus = 9000, .memory_mib = 375, .storage_kbps = 0}));
  EXPECT_EQ(ProportionalShare(node, 8), node.capacity);
  EXPECT_EQ(ProportionalShare(node, 16).milli_cpus, 48000);
  EXPECT_EQ(ProportionalShare(node, 0), Resources{});
}

TEST(TypicalNodeTest, IsTheFirstOfTheLargest) {
  const Cluster cluster{
      .nodes = {{.name = "a", .gpus = 4}, {.name = "b", .gpus = 8}, {.name = "c", .gpus = 8}}};
  EXPECT_EQ(TypicalNode(cluster).name, "b");
}

}  // namespace
}  // namespace trainyard::model
