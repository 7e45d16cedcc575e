// SPDX-License-Identifier: Apache-2.0
#include "originals/buddy_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/catalog_lookup.h"
#include "originals/originals.h"
#include "support/hand_made_nodes.h"

namespace trainyard::originals {
namespace {

class NobodyHolds final : public JobTable {
 public:
  [[nodiscard]] std::span<const JobId> live() const override { return {}; }
  [[nodiscard]] JobView at(JobId job) const override { return {.id = job, .spec = &spec_}; }

 private:
  const JobSpec spec_{};
};

// Cells of the demands in order, as ElasticFlow's log numbers them: first cell and size.
std::vector<std::pair<int, int>> CellsOf(const Cluster& cluster, const std::vector<int>& gpus,
                                         const Packer& packer, Memory* memory) {
  std::vector<Demand> demands;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    demands.push_back({.job = JobAt(i), .gpus = gpus[i]});
  }
  std::vector<Slices> slices;
  const NobodyHolds jobs;
  (void)packer.Pack({FreeGpus(cluster), demands, jobs}, slices, memory);
  std::vector<std::pair<int, int>> cells;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (slices[i].empty()) {
      continue;
    }
    const Slice& first = slices[i].front();
    cells.emplace_back(
        static_cast<int>(Index(first.node)) * cluster.nodes[0].gpus + std::countr_zero(first.gpus),
        gpus[i]);
  }
  return cells;
}

using Cells = std::vector<std::pair<int, int>>;

// Reference 7.1: instant 2930069 of cluster10.
TEST(BuddyGroupsTest, WholeNodesGoInTheOrderOfTheDemands) {
  const auto packer =
      base::MakeFrom(Originals(), ComponentKind::kPlacement, {.name = "buddy-groups"})
          .value()
          .packer;
  const auto memory = packer->NewMemory();
  const Cluster cluster = Nodes(std::vector<int>(32, 8));
  EXPECT_EQ(CellsOf(cluster, {64, 64, 32, 64}, *packer, memory.get()),
            (Cells{{0, 64}, {64, 64}, {128, 32}, {160, 64}}));
}

TEST(BuddyGroupsTest, SmallJobsShareTheOldestNodeOfTheirGroup) {
  const auto packer =
      base::MakeFrom(Originals(), ComponentKind::kPlacement, {.name = "buddy-groups"})
          .value()
          .packer;
  const auto memory = packer->NewMemory();
  const Cluster cluster = Nodes({8, 8, 8});
  EXPECT_EQ(CellsOf(cluster, {4, 2, 2, 1}, *packer, memory.get()),
            (Cells{{0, 4}, {4, 2}, {6, 2}, {8, 1}}));
  // After one GPU a node offers blocks of one only: four GPUs go elsewhere.
  EXPECT_EQ(CellsOf(cluster, {1, 4}, *packer, memory.get()), (Cells{{0, 1}, {8, 4}}));
}

// Reference 8.1: nodes are taken switch by switch until some were given back, from then on by their
// numbers within the switches, and of equal numbers those first that were free already.
TEST(BuddyGroupsTest, NodesOfSwitchesAreSortedByNumberOnceSomeWereGivenBack) {
  const auto packer =
      base::MakeFrom(Originals(), ComponentKind::kPlacement, {.name = "buddy-groups"})
          .value()
          .packer;
  const auto memory = packer->NewMemory();
  Cluster cluster = Nodes(std::vector<int>(16, 8));
  for (std::size_t node = 8; node < 16; ++node) {
    cluster.nodes[node].switch_index = 1;
  }
  const auto& order = static_cast<const NodeOrder&>(*memory);
  const auto left = [&order] {
    std::vector<std::size_t> nodes;
    for (const NodeId node : order.free) {
      nodes.push_back(Index(node));
    }
    return nodes;
  };
  EXPECT_TRUE(CellsOf(cluster, {}, *packer, memory.get()).empty());  // nothing is given back
  EXPECT_EQ(CellsOf(cluster, {32, 32}, *packer, memory.get()), (Cells{{0, 32}, {32, 32}}));
  EXPECT_EQ(left(), (std::vector<std::size_t>{8, 9, 10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(CellsOf(cluster, {32, 32, 32}, *packer, memory.get()),
            (Cells{{0, 32}, {16, 32}, {32, 32}}));
  EXPECT_EQ(left(), (std::vector<std::size_t>{14, 6, 15, 7}));
}

// The node that the first and the last job share comes back with the last one, behind node 2, which
// has the same number in the other switch.
TEST(BuddyGroupsTest, ASharedNodeIsGivenBackByTheLastOfItsJobs) {
  const auto packer =
      base::MakeFrom(Originals(), ComponentKind::kPlacement, {.name = "buddy-groups"})
          .value()
          .packer;
  const auto memory = packer->NewMemory();
  Cluster cluster = Nodes({8, 8, 8, 8});
  cluster.nodes[2].switch_index = 1;
  cluster.nodes[3].switch_index = 1;
  EXPECT_EQ(CellsOf(cluster, {4, 8, 8, 4}, *packer, memory.get()),
            (Cells{{0, 4}, {8, 8}, {16, 8}, {4, 4}}));
  EXPECT_EQ(CellsOf(cluster, {8, 8}, *packer, memory.get()), (Cells{{16, 8}, {0, 8}}));
}

// Jobs 0, 1 and 2 of one node each, the last of which ends first.
class ThreeOnANodeEach final : public JobTable {
 public:
  ThreeOnANodeEach() {
    for (std::size_t i = 0; i < 3; ++i) {
      specs_[i].deadline = TimePoint{Duration{300 - 100 * static_cast<int>(i)}};
    }
  }
  [[nodiscard]] std::span<const JobId> live() const override { return live_; }
  [[nodiscard]] JobView at(JobId job) const override {
    return {.id = job, .spec = &specs_[Index(job)], .grant = &grants_[Index(job)]};
  }
  void Hold(const std::vector<Slices>& slices) {
    for (std::size_t i = 0; i < slices.size(); ++i) {
      grants_[i].gpus = 8;
      grants_[i].slices = slices[i];
    }
  }
  void End(JobId job) { std::erase(live_, job); }

 private:
  std::array<JobSpec, 3> specs_;
  std::array<Grant, 3> grants_;
  std::vector<JobId> live_{JobAt(0), JobAt(1), JobAt(2)};
};

std::vector<std::size_t> FirstNodes(const std::vector<Slices>& slices) {
  std::vector<std::size_t> nodes;
  for (const Slices& gang : slices) {
    nodes.push_back(Index(gang.front().node));
  }
  return nodes;
}

// Reference 8.1: ef and ef-accessctrl release ended jobs first, then in the order of deadlines. All
// nodes have number 0 in their switches, so that the first one released is the first one taken.
TEST(BuddyGroupsTest, NodesOfOneNumberComeBackByDeadlineWhereAsked) {
  Cluster cluster = Nodes({8, 8, 8});
  cluster.nodes[1].switch_index = 1;
  cluster.nodes[2].switch_index = 2;
  using Order = std::vector<std::size_t>;
  for (const auto& [given_back, ended, second] :
       {std::tuple{"placed", false, Order{0, 1, 2}}, std::tuple{"deadline", false, Order{2, 1, 0}},
        std::tuple{"deadline", true, Order{0, 2, 1}}}) {
    const auto packer =
        base::MakeFrom(Originals(), ComponentKind::kPlacement,
                       {.name = "buddy-groups", .values = {{"given_back", given_back}}})
            .value()
            .packer;
    const auto memory = packer->NewMemory();
    ThreeOnANodeEach jobs;
    std::vector<Demand> demands;
    for (std::size_t i = 0; i < 3; ++i) {
      demands.push_back({.job = JobAt(i), .gpus = 8});
    }
    std::vector<Slices> slices;
    ASSERT_TRUE(packer->Pack({FreeGpus(cluster), demands, jobs}, slices, memory.get()));
    EXPECT_EQ(FirstNodes(slices), (Order{0, 1, 2}));
    jobs.Hold(slices);
    if (ended) {
      jobs.End(JobAt(0));
    }
    ASSERT_TRUE(packer->Pack({FreeGpus(cluster), demands, jobs}, slices, memory.get()));
    EXPECT_EQ(FirstNodes(slices), second) << given_back;
  }
}

TEST(BuddyGroupsTest, WhatDoesNotFitIsNotPlaced) {
  const auto packer =
      base::MakeFrom(Originals(), ComponentKind::kPlacement, {.name = "buddy-groups"})
          .value()
          .packer;
  const auto memory = packer->NewMemory();
  EXPECT_EQ(CellsOf(Nodes({4}), {4, 1}, *packer, memory.get()), (Cells{{0, 4}}));
}

TEST(BuddyGroupsTest, BlocksAreTakenWhereTheGroupsHaveNoRoomForAll) {
  const auto packer =
      base::MakeFrom(Originals(), ComponentKind::kPlacement, {.name = "buddy-groups"})
          .value()
          .packer;
  const auto memory = packer->NewMemory();
  EXPECT_EQ(CellsOf(Nodes({8}), {1, 4}, *packer, memory.get()), (Cells{{0, 1}, {4, 4}}));
}

// Sizes that fill a part of the nodes, the largest first.
std::vector<Demand> RandomDemands(std::mt19937& random, int room) {
  std::vector<Demand> demands;
  while (room > 0) {
    const int gpus = std::min(room, 1 << random() % 5);
    demands.push_back({.gpus = gpus});
    room -= gpus;
  }
  std::stable_sort(demands.begin(), demands.end(),
                   [](const Demand& a, const Demand& b) { return a.gpus > b.gpus; });
  return demands;
}

TEST(BuddyGroupsTest, TheLastPlacingIsAShortcutOnly) {
  Cluster cluster = Nodes(std::vector<int>(12, 4));
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
    cluster.nodes[i].switch_index = static_cast<int>(i / 4);
  }
  FreeGpus free(cluster);
  const NobodyHolds jobs;
  NodeOrder order;
  NodeOrder forgetful;
  std::mt19937 random(7);
  std::vector<Demand> demands;
  std::vector<Slices> placed;
  int fitted = 0;
  for (int round = 0; round < 400; ++round) {
    if (random() % 3 == 0) {
      demands = RandomDemands(random, static_cast<int>(random() % 50));
    }
    if (random() % 100 == 0) {
      const NodeId node = NodeAt(random() % cluster.nodes.size());
      free.SetUp(node, !free.up(node));
    }
    forgetful.last = {};
    std::vector<Slices> placed_anew;
    const PackRequest ask{free, demands, jobs};
    const bool fits = PlaceInGroups(ask, GivenBack::kAsPlaced, placed, order);
    ASSERT_EQ(fits, PlaceInGroups(ask, GivenBack::kAsPlaced, placed_anew, forgetful))
        << "round " << round;
    ASSERT_TRUE(!fits || placed == placed_anew) << "round " << round;
    ASSERT_EQ(order.free, forgetful.free);
    ASSERT_EQ(order.taken, forgetful.taken);
    fitted += fits ? 1 : 0;
  }
  EXPECT_GT(fitted, 100);
  EXPECT_LT(fitted, 400);
}

}  // namespace
}  // namespace trainyard::originals
