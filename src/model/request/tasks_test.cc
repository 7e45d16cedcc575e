// SPDX-License-Identifier: Apache-2.0
#include "model/request/tasks.h"

#include <gtest/gtest.h>

#include <string>

namespace trainyard::model {
namespace {

NodeRequest OnNodes(int least, int most = 0) {
  NodeRequest request;
  request.nodes = {.least = least, .most = most == 0 ? least : most};
  return request;
}

// "4 on 2", or what is wrong.
std::string Settled(TaskCounts stated, const NodeRequest& request = {}, int gpus = 8) {
  const Result<TasksOnNodes> settled = SettleTasks(stated, request, gpus);
  return settled.ok()
             ? std::to_string(settled.value().per_node) + " on " + TextOf(settled.value().nodes)
             : settled.error().message;
}

TEST(TasksTest, WhatIsStatedOfEachNodeSaysNothingOfTheirNumber) {
  EXPECT_EQ(Settled({}), "0 on 0");
  EXPECT_EQ(Settled({}, OnNodes(2, 4)), "0 on 2-4");
  EXPECT_EQ(Settled({.per_node = 4}), "4 on 0");
  EXPECT_EQ(Settled({.per_node = 4}, OnNodes(2, 4)), "4 on 2-4");
}

TEST(TasksTest, TasksAreTheSameNumberOnEachNode) {
  EXPECT_EQ(Settled({.tasks = 8}, OnNodes(2)), "4 on 2");
  EXPECT_EQ(Settled({.tasks = 8}, OnNodes(1)), "8 on 1");
  EXPECT_EQ(Settled({.tasks = 10}, OnNodes(4)),
            "its 10 tasks cannot be on 4 nodes, the same number on each; expected 8 or 12 tasks");
  EXPECT_EQ(Settled({.tasks = 1}, OnNodes(3)),
            "its 1 task cannot be on 3 nodes, the same number on each; expected 3 tasks");
}

TEST(TasksTest, TasksAndThoseOfANodeSayHowManyNodesThereAre) {
  EXPECT_EQ(Settled({.tasks = 8, .per_node = 4}), "4 on 2");
  EXPECT_EQ(Settled({.tasks = 8, .per_node = 4}, OnNodes(1, 3)), "4 on 2");
  EXPECT_EQ(
      Settled({.tasks = 10, .per_node = 4}),
      "its 10 tasks, 4 on each node, are on no whole number of nodes; expected 8 or 12 tasks");
  EXPECT_EQ(
      Settled({.tasks = 8, .per_node = 4}, OnNodes(3)),
      "its 8 tasks, 4 on each node, are on 2 nodes, and it asks for 3; expected 12 tasks, or 2 "
      "nodes");
  EXPECT_EQ(
      Settled({.tasks = 8, .per_node = 2}, OnNodes(1, 3)),
      "its 8 tasks, 2 on each node, are on 4 nodes, and it asks for 1-3; expected 6 tasks, or "
      "4 nodes");
}

TEST(TasksTest, TasksNeedAKnownNumberOfNodes) {
  EXPECT_EQ(Settled({.tasks = 3}, {}, 1), "3 on 0") << "one GPU is on one node";
  EXPECT_EQ(Settled({.tasks = 3}, {}, 0), "3 on 0") << "without GPUs it lies on one";
  const std::string unknown =
      "nothing says on how many nodes its 8 tasks are; expected one number of nodes with them (1: "
      "all of them on one), or how many are on each node";
  EXPECT_EQ(Settled({.tasks = 8}, {}, 2), unknown);
  EXPECT_EQ(Settled({.tasks = 8}, OnNodes(2, 4)), unknown);
  NodeRequest named;
  named.node_list = "n[0-1]";
  EXPECT_EQ(Settled({.tasks = 8}, named, 0), unknown) << "it lies on both";
}

TEST(TasksTest, AmountsOfTasksAreThoseOfTheirNodes) {
  CpuRequest cpus;
  ASSERT_TRUE(ReadPerTask("1.5/task", cpus));
  EXPECT_EQ(TextOf(ForTasks(cpus, 4, 8)), "6/node");
  EXPECT_EQ(TextOf(ForTasks(cpus, 0, 8)), "1.5/gpu") << "a worker for each GPU";
  EXPECT_EQ(TextOf(ForTasks(cpus, 0, 0)), "1.5/node") << "one worker on each node";
  MemoryRequest memory;
  ASSERT_TRUE(ReadPerTask("8G/task", memory));
  EXPECT_EQ(TextOf(ForTasks(memory, 4, 8)), "32G/node");
  EXPECT_EQ(TextOf(ForTasks(memory, 0, 8)), "8G/gpu");
  for (const char* text : {"4", "4/node", "/task", "4/node/task", "x/task", "-1/task"}) {
    EXPECT_FALSE(ReadPerTask(text, cpus)) << text;
  }
}

}  // namespace
}  // namespace trainyard::model
