// SPDX-License-Identifier: Apache-2.0
#include "policies/node_room.h"

#include <gtest/gtest.h>

namespace trainyard::policies {
namespace {

class NodeRoomTest : public testing::Test {
 protected:
  // How many of these gangs fit, in this order.
  int Fitting(const std::vector<int>& gangs) {
    const Snapshot snapshot{.cluster = &cluster_, .nodes_up = &up_};
    NodeRoom room(snapshot);
    return static_cast<int>(
        std::count_if(gangs.begin(), gangs.end(), [&room](int gpus) { return room.Add(gpus); }));
  }
  Cluster cluster_{.nodes = {{.gpus = 4}, {.gpus = 4}, {.gpus = 4}}};
  std::vector<bool> up_{true, true, true};
};

TEST_F(NodeRoomTest, AGangThatFitsInOneNodeIsNotSplit) {
  EXPECT_EQ(Fitting({3, 3, 3}), 3);
  EXPECT_EQ(Fitting({3, 3, 3, 2}), 3);
  EXPECT_EQ(Fitting({3, 3, 3, 1, 1, 1, 1}), 6);
}

TEST_F(NodeRoomTest, ALargerGangNeedsIdleNodesAndRoomForTheRest) {
  EXPECT_EQ(Fitting({8, 4}), 2);
  EXPECT_EQ(Fitting({1, 8}), 2);
  EXPECT_EQ(Fitting({1, 11}), 2);
  EXPECT_EQ(Fitting({2, 11}), 1);
  EXPECT_EQ(Fitting({1, 1, 12}), 2);
  EXPECT_EQ(Fitting({6, 6, 1}), 2);
}

TEST_F(NodeRoomTest, WhatDoesNotFitTakesNothing) { EXPECT_EQ(Fitting({1, 12, 11}), 2); }

TEST_F(NodeRoomTest, NodesThatAreDownHaveNoRoom) {
  up_[1] = false;
  EXPECT_EQ(Fitting({4, 4, 4}), 2);
  EXPECT_EQ(Fitting({8, 1}), 1);
}

}  // namespace
}  // namespace trainyard::policies
