// SPDX-License-Identifier: Apache-2.0
#include "model/data_caches.h"

#include <gtest/gtest.h>

namespace trainyard::model {
namespace {

constexpr std::int64_t kKbps = 1024;
constexpr double kSecondsPerMib = 1.024;  // 1,048,576 bytes at 1,024,000 bytes/s

Cluster Nodes(int count, std::int64_t cache_mib) {
  Cluster cluster;
  for (int i = 0; i < count; ++i) {
    cluster.nodes.push_back(
        {.name = "n" + std::to_string(i), .gpus = 4, .cache_mib = cache_mib, .remote_kbps = kKbps});
  }
  return cluster;
}

DataSet Data(const std::string& name, std::int64_t mib, const std::string& home = {}) {
  return {.name = name, .mib = mib, .home = home};
}

Slices On(std::initializer_list<std::size_t> nodes) {
  Slices slices;
  for (const std::size_t node : nodes) {
    slices.push_back({.node = NodeAt(node), .gpus = 1});
  }
  return slices;
}

// One job after the other, each of no length.
double Visit(DataCaches& caches, const DataSet& data, std::size_t node) {
  const Duration wait = caches.Start(data, On({node}));
  caches.Stop(data, On({node}));
  return Seconds(wait);
}

TEST(DataCachesTest, ANodeFetchesOnce) {
  DataCaches caches(Nodes(2, 100));
  const DataSet data = Data("a", 50);
  EXPECT_EQ(Seconds(caches.Start(data, On({0}))), 50 * kSecondsPerMib);
  caches.AdvanceTo(AtSeconds(1000));
  caches.Stop(data, On({0}));
  EXPECT_EQ(caches.Holders(data), std::vector{NodeAt(0)});
  EXPECT_EQ(caches.WaitOn(data, NodeAt(0)), Duration{0});
  EXPECT_EQ(Seconds(caches.WaitOn(data, NodeAt(1))), 50 * kSecondsPerMib);
  EXPECT_EQ(Visit(caches, data, 0), 0);
}

TEST(DataCachesTest, AGangWaitsForTheSlowestOfItsNodes) {
  Cluster cluster = Nodes(3, 100);
  cluster.nodes[1].remote_kbps = kKbps / 4;
  cluster.nodes[2].remote_kbps = 0;
  DataCaches caches(cluster);
  const DataSet data = Data("a", 10);
  EXPECT_EQ(caches.WaitOn(data, NodeAt(2)), Duration{0});
  EXPECT_EQ(Seconds(caches.Start(data, On({0, 1, 2}))), 40 * kSecondsPerMib);
  EXPECT_EQ(Seconds(caches.LongestWait(data)), 40 * kSecondsPerMib);
}

TEST(DataCachesTest, ALaterJobWaitsForTheRestOfAFetch) {
  DataCaches caches(Nodes(1, 100));
  const DataSet data = Data("a", 100);
  EXPECT_EQ(Seconds(caches.Start(data, On({0}))), 102.4);
  caches.AdvanceTo(AtSeconds(100));
  EXPECT_DOUBLE_EQ(Seconds(caches.Start(data, On({0}))), 2.4);
  caches.AdvanceTo(AtSeconds(103));
  EXPECT_EQ(Seconds(caches.Start(data, On({0}))), 0);
}

TEST(DataCachesTest, TheLeastRecentlyUsedGoes) {
  DataCaches caches(Nodes(1, 100));
  Visit(caches, Data("a", 40), 0);
  Visit(caches, Data("b", 40), 0);
  caches.AdvanceTo(AtSeconds(1000));
  EXPECT_EQ(Visit(caches, Data("a", 40), 0), 0);  // used again: b is older now
  EXPECT_GT(Visit(caches, Data("c", 40), 0), 0);
  EXPECT_EQ(caches.WaitOn(Data("a", 40), NodeAt(0)), Duration{0});
  EXPECT_TRUE(caches.Holders(Data("b", 40)).empty());
}

TEST(DataCachesTest, WhatRunningJobsUseStays) {
  DataCaches caches(Nodes(1, 100));
  const DataSet used = Data("used", 60);
  static_cast<void>(caches.Start(used, On({0})));
  EXPECT_GT(Visit(caches, Data("large", 50), 0), 0);  // no room beside it
  EXPECT_TRUE(caches.Holders(Data("large", 50)).empty());
  EXPECT_GT(Visit(caches, Data("small", 40), 0), 0);
  EXPECT_EQ(caches.Holders(Data("small", 40)).size(), 1U);
  EXPECT_EQ(caches.Holders(used).size(), 1U);
  caches.Stop(used, On({0}));
  Visit(caches, Data("large", 50), 0);
  EXPECT_TRUE(caches.Holders(used).size() + caches.Holders(Data("small", 40)).size() < 2);
  EXPECT_EQ(caches.Holders(Data("large", 50)).size(), 1U);
}

// The first user came when there was no room for it, the second one when there was.
TEST(DataCachesTest, RoomThatComesLaterIsUsed) {
  DataCaches caches(Nodes(1, 100));
  const DataSet wide = Data("wide", 80);
  const DataSet data = Data("a", 50);
  static_cast<void>(caches.Start(wide, On({0})));
  static_cast<void>(caches.Start(data, On({0})));
  EXPECT_TRUE(caches.Holders(data).empty());
  caches.Stop(wide, On({0}));
  EXPECT_GT(caches.Start(data, On({0})), Duration{0});
  EXPECT_EQ(caches.Holders(data).size(), 1U);
  caches.Stop(data, On({0}));
  Visit(caches, wide, 0);
  EXPECT_EQ(caches.Holders(data).size(), 1U);  // its second user still runs
}

TEST(DataCachesTest, WhatDoesNotFitIsFetchedAtEveryStart) {
  DataCaches caches(Nodes(1, 0));
  EXPECT_GT(Visit(caches, Data("a", 1), 0), 0);
  EXPECT_GT(Visit(caches, Data("a", 1), 0), 0);
}

TEST(DataCachesTest, AHomeNeedsNoCache) {
  DataCaches caches(Nodes(3, 100));
  const DataSet data = Data("a", 10, "n1");
  EXPECT_EQ(Visit(caches, data, 1), 0);
  EXPECT_GT(Visit(caches, data, 0), 0);
  EXPECT_EQ(caches.Holders(data), (std::vector{NodeAt(0), NodeAt(1)}));
  EXPECT_GT(Visit(caches, Data("b", 10, "elsewhere"), 1), 0);
}

TEST(DataCachesTest, AFailedNodeKeepsNothingButWhatItIsTheHomeOf) {
  DataCaches caches(Nodes(1, 100));
  const DataSet home = Data("home", 10, "n0");
  Visit(caches, Data("a", 50), 0);
  Visit(caches, home, 0);
  caches.Clear(NodeAt(0));
  EXPECT_TRUE(caches.Holders(Data("a", 50)).empty());
  EXPECT_EQ(caches.Holders(home).size(), 1U);
  EXPECT_GT(Visit(caches, Data("b", 100), 0), 0);
  EXPECT_EQ(caches.Holders(Data("b", 100)).size(), 1U);
}

TEST(DataCachesTest, ACopyIsIndependent) {
  DataCaches caches(Nodes(2, 100));
  Visit(caches, Data("a", 50), 0);
  DataCaches copy = caches;
  Visit(copy, Data("a", 50), 1);
  copy.Clear(NodeAt(0));
  EXPECT_EQ(caches.Holders(Data("a", 50)), std::vector{NodeAt(0)});
  EXPECT_EQ(copy.Holders(Data("a", 50)), std::vector{NodeAt(1)});
}

TEST(DataCachesTest, WithoutBandwidthNothingIsKeptOrWaitedFor) {
  Cluster cluster = Nodes(2, 100);
  cluster.nodes[0].remote_kbps = 0;
  cluster.nodes[1].remote_kbps = 0;
  DataCaches caches(cluster);
  const DataSet data = Data("a", 50);
  EXPECT_EQ(Visit(caches, data, 0), 0);
  EXPECT_TRUE(caches.Holders(data).empty());
  EXPECT_EQ(caches.LongestWait(data), Duration{0});
  caches.Clear(NodeAt(0));
}

NodeData Told(std::int64_t cache_mib, std::int64_t kbps, const std::vector<DataSet>& held) {
  return {.cache_mib = cache_mib, .rate_kbps = kbps, .held = held};
}

TEST(DataCachesTest, WhatANodeTellsCounts) {
  Cluster cluster = Nodes(2, 0);  // the file says nothing
  cluster.nodes[0].remote_kbps = 0;
  cluster.nodes[1].remote_kbps = 0;
  DataCaches caches(cluster);
  caches.Correct(NodeAt(1), Told(100, kKbps, {Data("a", 60), Data("b", 30)}));
  EXPECT_EQ(caches.Holders(Data("a", 60)), std::vector{NodeAt(1)});
  EXPECT_EQ(caches.WaitOn(Data("a", 60), NodeAt(1)), Duration{0});
  EXPECT_EQ(Seconds(caches.WaitOn(Data("c", 10), NodeAt(1))), 10 * kSecondsPerMib);
  EXPECT_EQ(caches.WaitOn(Data("c", 10), NodeAt(0)), Duration{0}) << "it has told no bandwidth";
  EXPECT_EQ(Seconds(caches.LongestWait(Data("c", 10))), 10 * kSecondsPerMib);
  caches.Correct(NodeAt(1), Told(100, kKbps, {Data("b", 30)}));
  EXPECT_TRUE(caches.Holders(Data("a", 60)).empty());
  EXPECT_EQ(Seconds(caches.Start(Data("c", 70), On({1}))), 70 * kSecondsPerMib);
  EXPECT_EQ(caches.Holders(Data("c", 70)), std::vector{NodeAt(1)}) << "a has left room for it";
}

TEST(DataCachesTest, WhatIsUsedOrOnItsWayIsNotGoneBecauseItIsNotToldYet) {
  DataCaches caches(Nodes(1, 100));
  static_cast<void>(caches.Start(Data("used", 40), On({0})));
  Visit(caches, Data("on its way", 40), 0);
  caches.Correct(NodeAt(0), Told(100, kKbps, {}));
  EXPECT_EQ(caches.Holders(Data("used", 40)).size(), 1U);
  EXPECT_EQ(caches.Holders(Data("on its way", 40)).size(), 1U);
  EXPECT_GT(caches.WaitOn(Data("used", 40), NodeAt(0)), Duration{0});
  caches.Correct(NodeAt(0), Told(100, kKbps, {Data("used", 45)}));  // sooner, and larger
  EXPECT_EQ(caches.WaitOn(Data("used", 40), NodeAt(0)), Duration{0});
  caches.AdvanceTo(AtSeconds(1000));
  caches.Correct(NodeAt(0), Told(100, kKbps, {Data("used", 45)}));
  EXPECT_TRUE(caches.Holders(Data("on its way", 40)).empty()) << "it should be there by now";
  caches.Stop(Data("used", 40), On({0}));
  Visit(caches, Data("large", 100), 0);
  EXPECT_EQ(caches.Holders(Data("large", 100)).size(), 1U);
}

TEST(DataCachesTest, WhatWasToldIsSaved) {
  DataCaches caches(Nodes(2, 0));
  caches.Correct(NodeAt(1), Told(100, 2 * kKbps, {Data("a", 60)}));
  StateStream out;
  caches.Serialize(out);
  caches.SerializeTold(out);
  StateStream in(out.bytes());
  DataCaches again(Nodes(2, 0));
  again.Serialize(in);
  again.SerializeTold(in);
  ASSERT_TRUE(in.complete());
  EXPECT_EQ(again.Holders(Data("a", 60)), std::vector{NodeAt(1)});
  EXPECT_EQ(Seconds(again.WaitOn(Data("b", 10), NodeAt(1))), 5 * kSecondsPerMib);
  Visit(again, Data("b", 10), 1);
  EXPECT_EQ(again.Holders(Data("b", 10)).size(), 1U);
}

}  // namespace
}  // namespace trainyard::model
