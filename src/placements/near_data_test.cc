// SPDX-License-Identifier: Apache-2.0
// Option `locality` of each placement that has it.
#include "placements/near_data.h"
#include "base/catalog_lookup.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <random>

#include "placements/placements.h"

namespace trainyard::placements {
namespace {

using Waits = std::map<std::size_t, double>;

// DataNodes that hold everything, after so many seconds; all others wait for long.
class Lies final : public DataLocality {
 public:
  static constexpr double kElsewhere = 1000;
  explicit Lies(Waits on) : on_(std::move(on)) {}
  [[nodiscard]] Duration WaitOn(const DataSet& /*data*/, NodeId node) const override {
    const auto there = on_.find(Index(node));
    return FromSeconds(there == on_.end() ? kElsewhere : there->second);
  }
  [[nodiscard]] std::vector<NodeId> Holders(const DataSet& /*data*/) const override {
    std::vector<NodeId> nodes;
    for (const auto& [node, wait] : on_) {
      nodes.push_back(NodeAt(node));
    }
    return nodes;
  }

 private:
  const Waits on_;
};

Cluster DataNodes(int count, int gpus) {
  Cluster cluster;
  for (int i = 0; i < count; ++i) {
    cluster.nodes.push_back({.name = "n", .gpus = gpus});
  }
  return cluster;
}

JobSpec WithData() {
  JobTraits traits;
  traits.data_set = DataSet{.name = "a", .mib = 1, .home = {}};
  return {.name = "job", .traits = std::make_shared<const JobTraits>(traits)};
}

std::unique_ptr<Placement> NamedNode(const std::string& text) {
  Result<Components> placement =
      base::MakeFrom(Placements(), ComponentKind::kPlacement, ParseNamedOptions(text).value());
  EXPECT_TRUE(placement.ok()) << placement.error().message;
  return std::move(placement.value().placement);
}

Slice OnNode(std::size_t node, std::uint64_t gpus) { return {.node = NodeAt(node), .gpus = gpus}; }

TEST(NearDataTest, TakesANodeThatHoldsTheData) {
  const Cluster cluster = DataNodes(3, 4);
  const Lies lies(Waits{{2, 0}});
  FreeGpus free(cluster, &lies);
  free.Take({OnNode(0, 0b1)});  // the best fit without data
  free.Take({OnNode(2, 0b10)});
  for (const char* name : {"consolidated", "first-fit", "scattered"}) {
    const std::optional<Slices> plain = NamedNode(name)->Choose(free, WithData(), {.gpus = 2});
    EXPECT_EQ(plain->front().node, NodeAt(0)) << name;
    const auto placement = NamedNode(std::string(name) + ":locality=1");
    EXPECT_EQ(placement->name(), name);
    EXPECT_EQ(placement->Choose(free, WithData(), {.gpus = 2}), (Slices{OnNode(2, 0b101)})) << name;
    EXPECT_EQ(placement->Choose(free, JobSpec{}, {.gpus = 2}), plain) << name;
  }
  EXPECT_EQ(NamedNode("buddy:locality=1")->Choose(free, WithData(), {.gpus = 2}),
            (Slices{OnNode(2, 0b1100)}));
}

TEST(NearDataTest, StaysWhereTheDataAre) {
  const Cluster cluster = DataNodes(3, 4);
  const Lies lies(Waits{{0, 0}, {1, 0}, {2, 0}});
  FreeGpus free(cluster, &lies);
  free.Take({OnNode(1, 0b1)});
  EXPECT_EQ(NamedNode("consolidated:locality=1")->Choose(free, WithData(), {.gpus = 2}),
            (Slices{OnNode(1, 0b110)}));
}

TEST(NearDataTest, NeverUsesMoreNodes) {
  const Cluster cluster = DataNodes(4, 4);
  const Lies lies(Waits{{0, 0}, {1, 0}});
  FreeGpus free(cluster, &lies);
  free.Take({OnNode(0, 0b11)});
  free.Take({OnNode(1, 0b11)});
  free.Take({OnNode(2, 0b1)});
  const auto placement = NamedNode("consolidated:spread=1,locality=1");
  EXPECT_EQ(placement->Choose(free, WithData(), {.gpus = 3}), (Slices{OnNode(2, 0b1110)}));
  EXPECT_EQ(placement->Choose(free, WithData(), {.gpus = 2})->front().node, NodeAt(0));
  EXPECT_EQ(placement->Choose(free, WithData(), {.gpus = 4, .may_split = true}),
            (Slices{OnNode(3, 0b1111)}));
}

TEST(NearDataTest, BreaksUpNoFurtherIdleNode) {
  const Cluster cluster = DataNodes(3, 4);
  const Lies lies(Waits{{1, 0}});
  FreeGpus free(cluster, &lies);
  free.Take({OnNode(0, 0b1)});
  const auto placement = NamedNode("consolidated:locality=1");
  EXPECT_EQ(placement->Choose(free, WithData(), {.gpus = 2}), (Slices{OnNode(0, 0b110)}));
  free.Take({OnNode(0, 0b110)});  // now some idle node must be
  EXPECT_EQ(placement->Choose(free, WithData(), {.gpus = 2}), (Slices{OnNode(1, 0b11)}));
}

TEST(NearDataTest, GoesOnlyWhereItSavesEnough) {
  const Cluster cluster = DataNodes(3, 4);
  const Lies lies(Waits{{1, 700}, {2, 300}});
  const FreeGpus free(cluster, &lies);
  const auto node = [&](const std::string& locality) {
    return Index(NamedNode("consolidated:locality=" + locality)
                     ->Choose(free, WithData(), {.gpus = 1})
                     ->front()
                     .node);
  };
  EXPECT_EQ(node("1"), 1U);    // saves 300 s: best fit among those that save anything
  EXPECT_EQ(node("301"), 2U);  // saves 700 s
  EXPECT_EQ(node("701"), 0U);
}

TEST(NearDataTest, TakesCpusWhereTheyAreFree) {
  Cluster cluster = DataNodes(3, 4);
  for (NodeSpec& node : cluster.nodes) {
    node.capacity = {.milli_cpus = 8000};
  }
  const Lies lies(Waits{{1, 0}, {2, 0}});
  FreeGpus free(cluster, &lies);
  free.Take({{.node = NodeAt(1), .gpus = 1, .soft = {.milli_cpus = 6000}}});
  const std::optional<Slices> chosen =
      NamedNode("first-fit:cpus_per_gpu=2,locality=1")->Choose(free, WithData(), {.gpus = 2});
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->front().node, NodeAt(2));
  EXPECT_EQ(chosen->front().soft.milli_cpus, 4000);
}

// Whatever is free and wherever data lie: a place is found where the plain placement finds one, on
// free GPUs, on no more nodes and with no longer a wait.
TEST(NearDataTest, IsNeverWorseThanThePlainPlacement) {
  std::mt19937 random(7);
  std::size_t nearer = 0;
  for (int round = 0; round < 2000; ++round) {
    const Cluster cluster = DataNodes(6, round % 2 == 0 ? 4 : 8);
    Waits on;
    for (std::size_t node = 0; node < 6; ++node) {
      if (random() % 3 == 0) {
        on[node] = static_cast<double>(random() % 1000);
      }
    }
    const Lies lies(on);
    FreeGpus free(cluster, &lies);
    for (std::size_t node = 0; node < 6; ++node) {
      if (const std::uint64_t taken = random() & free.gpus(NodeAt(node)); taken != 0) {
        free.Take({OnNode(node, taken)});
      }
    }
    const int gpus = 1 + static_cast<int>(random() % 10);
    if (gpus > free.total()) {
      continue;
    }
    const auto wait = [&](const Slices& slices) {
      Duration longest{0};
      for (const Slice& slice : slices) {
        longest = std::max(longest, lies.WaitOn({}, slice.node));
      }
      return longest;
    };
    for (const std::string name : {"consolidated", "buddy", "first-fit", "scattered"}) {
      const auto plain = NamedNode(name)->Choose(free, WithData(), {.gpus = gpus});
      const auto near = NamedNode(name + ":locality=1")->Choose(free, WithData(), {.gpus = gpus});
      ASSERT_EQ(plain.has_value(), near.has_value()) << name;
      if (!plain) {
        continue;
      }
      int held = 0;
      for (const Slice& slice : *near) {
        held += std::popcount(slice.gpus);
      }
      EXPECT_EQ(held, gpus) << name;
      EXPECT_TRUE(free.AreFree(*near)) << name;
      EXPECT_LE(near->size(), plain->size()) << name;
      EXPECT_LE(wait(*near), wait(*plain)) << name;
      nearer += wait(*near) < wait(*plain) ? 1U : 0U;
    }
  }
  EXPECT_GT(nearer, 100U);
}

}  // namespace
}  // namespace trainyard::placements
