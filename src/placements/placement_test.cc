// SPDX-License-Identifier: Apache-2.0
// Each placement on clusters of a few nodes; masks are written with GPU 0 on the right.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <random>

#include "base/catalog_lookup.h"
#include "placements/placements.h"
#include "support/hand_made_nodes.h"
#include "support/print_slice.h"
#include "trainyard/free_gpus.h"

namespace trainyard::placements {

namespace {

Cluster WithCapacity(Cluster cluster, std::int64_t cpus, std::int64_t memory_gb) {
  for (NodeSpec& node : cluster.nodes) {
    node.capacity = {.milli_cpus = cpus * 1000, .memory_mib = memory_gb * 1024};
  }
  return cluster;
}

Slice At(std::size_t node, std::uint64_t gpus) { return {.node = NodeAt(node), .gpus = gpus}; }

Components Made(const std::string& text) {
  Result<Components> made =
      base::MakeFrom(Placements(), ComponentKind::kPlacement, ParseNamedOptions(text).value());
  EXPECT_TRUE(made.ok()) << made.error().message;
  return std::move(made).value();
}

std::unique_ptr<Placement> Named(const std::string& text) { return Made(text).placement; }

Demand For(int gpus) { return {.gpus = gpus}; }

std::string ErrorOf(const std::string& text) {
  const auto placement =
      base::MakeFrom(Placements(), ComponentKind::kPlacement, ParseNamedOptions(text).value());
  return placement.ok() ? "no error" : placement.error().message;
}

// A cluster on which a placement chooses.
class Yard {
 public:
  Yard(Cluster cluster, const std::string& placement)
      : cluster_(std::move(cluster)), free_(cluster_), placement_(Named(placement)) {}

  Yard& Take(std::size_t node, std::uint64_t gpus) {
    if (gpus != 0) {
      free_.Take({At(node, gpus)});
    }
    return *this;
  }
  [[nodiscard]] std::optional<Slices> Choose(int gpus) const {
    return placement_->Choose(free_, JobSpec{.gpus = gpus}, For(gpus));
  }
  // Chooses and takes.
  std::optional<Slices> Place(int gpus) {
    std::optional<Slices> slices = Choose(gpus);
    if (slices) {
      free_.Take(*slices);
    }
    return slices;
  }
  [[nodiscard]] FreeGpus& free() { return free_; }

 private:
  Cluster cluster_;
  FreeGpus free_;
  std::unique_ptr<Placement> placement_;
};

// ------------------------------------------------------------------------------------- catalogue

TEST(PlacementCatalogTest, AnUnknownNameIsAnsweredWithTheNearestAndAllNames) {
  std::string expected = "unknown placement 'budy'; did you mean 'buddy'?; known: ";
  for (const ComponentEntry& entry : Placements()) {
    expected += std::string(entry.name) + ", ";
  }
  EXPECT_EQ(ErrorOf("budy") + ", ", expected);
}

TEST(PlacementCatalogTest, AnUnknownOptionIsAnsweredWithTheNearest) {
  EXPECT_EQ(ErrorOf("consolidated:spred=1"),
            "placement 'consolidated': unknown option 'spred'; did you mean 'spread'?; known: "
            "spread, locality");
}

// ---------------------------------------------------------------------------------- consolidated

TEST(SplitTest, AGangIsSplitOnlyWhereItMayBe) {
  const Cluster cluster = Nodes({4, 4});
  for (const std::string name : {"consolidated", "buddy"}) {
    const auto placement = Named(name);
    FreeGpus free(cluster);
    free.Take(Slices{At(0, 0b0111), At(1, 0b0111)});
    EXPECT_FALSE(placement->Choose(free, {}, For(2))) << name;
    EXPECT_EQ(placement->Choose(free, {}, {.gpus = 2, .may_split = true}),
              (Slices{At(0, 0b1000), At(1, 0b1000)}))
        << name;
  }
}

TEST(ConsolidatedTest, AJobGoesWhereItFitsBest) {
  Yard yard(Nodes({4, 4, 4}), "consolidated");
  yard.Take(0, 0b0001).Take(1, 0b0011);
  EXPECT_EQ(yard.Choose(2), Slices({At(1, 0b1100)}));
  EXPECT_EQ(yard.Choose(3), Slices({At(0, 0b1110)}));
  EXPECT_EQ(yard.Choose(4), Slices({At(2, 0b1111)}));
}

TEST(ConsolidatedTest, OfEqualNodesItTakesTheLowest) {
  Yard yard(Nodes({4, 4, 4}), "consolidated");
  yard.Take(0, 0b1111);
  EXPECT_EQ(yard.Choose(1), Slices({At(1, 0b0001)}));
}

TEST(ConsolidatedTest, ItTakesTheLowestFreeGpusOfANode) {
  Yard yard(Nodes({8}), "consolidated");
  yard.Take(0, 0b00010010);
  EXPECT_EQ(yard.Choose(3), Slices({At(0, 0b00001101)}));
}

TEST(ConsolidatedTest, AJobThatFitsInOneNodeIsNotSplit) {
  Yard yard(Nodes({4, 4}), "consolidated");
  yard.Take(0, 0b0001).Take(1, 0b0001);
  EXPECT_EQ(yard.Choose(4), std::nullopt);
}

TEST(ConsolidatedTest, WithSpreadItIsSplitIfNoNodeHasRoom) {
  Yard yard(Nodes({4, 4}), "consolidated:spread=1");
  yard.Take(0, 0b0001).Take(1, 0b0001);
  EXPECT_EQ(yard.Choose(4), Slices({At(0, 0b1110), At(1, 0b0010)}));
}

TEST(ConsolidatedTest, WithSpreadANodeWithRoomStillComesFirst) {
  Yard yard(Nodes({4, 4, 4}), "consolidated:spread=1");
  yard.Take(0, 0b0001).Take(1, 0b0001);
  EXPECT_EQ(yard.Choose(4), Slices({At(2, 0b1111)}));
}

TEST(ConsolidatedTest, ALargeJobTakesTheFewestNodes) {
  Yard yard(Nodes({4, 4, 4, 4}), "consolidated");
  yard.Take(0, 0b0111).Take(2, 0b0111);
  EXPECT_EQ(yard.Choose(8), Slices({At(1, 0b1111), At(3, 0b1111)}));
}

TEST(ConsolidatedTest, TheRestOfALargeJobGoesWhereItFitsBest) {
  Yard yard(Nodes({4, 4, 4, 4}), "consolidated");
  yard.Take(1, 0b0111).Take(2, 0b0011);
  EXPECT_EQ(yard.Choose(6), Slices({At(0, 0b1111), At(2, 0b1100)}));
  EXPECT_EQ(yard.Choose(5), Slices({At(0, 0b1111), At(1, 0b1000)}));
}

TEST(ConsolidatedTest, ALargeJobTakesPartsOfNodesIfItMust) {
  Yard yard(Nodes({4, 4, 4}), "consolidated");
  yard.Take(0, 0b0001).Take(1, 0b0001).Take(2, 0b0011);
  EXPECT_EQ(yard.Choose(8), Slices({At(0, 0b1110), At(1, 0b1110), At(2, 0b1100)}));
}

TEST(ConsolidatedTest, NoLargeJobTakesMoreNodesThanItMust) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    Yard yard(Nodes({4, 4, 4, 4, 4, 4}), "consolidated");
    std::vector<int> counts;
    for (std::size_t node = 0; node < 6; ++node) {
      const std::uint64_t taken = random() % 16;
      yard.Take(node, taken);
      counts.push_back(4 - std::popcount(taken));
    }
    std::sort(counts.rbegin(), counts.rend());
    for (int gpus = 5; gpus <= yard.free().total(); ++gpus) {
      std::size_t fewest = 0;
      for (int held = 0; held < gpus; held += counts[fewest++]) {
      }
      ASSERT_EQ(yard.Choose(gpus)->size(), fewest) << "round " << round << ", " << gpus;
    }
  }
}

// ------------------------------------------------------------------------------------- first fit

TEST(FirstFitTest, TheFirstNodeWithRoomIsTaken) {
  Yard yard(Nodes({4, 4, 4}), "first-fit");
  yard.Take(0, 0b0111).Take(2, 0b0011);
  EXPECT_EQ(yard.Choose(2), Slices({At(1, 0b0011)}));
  EXPECT_EQ(yard.Choose(1), Slices({At(0, 0b1000)}));
}

TEST(FirstFitTest, AJobThatFitsInOneNodeIsNotSplit) {
  Yard yard(Nodes({4, 4}), "first-fit");
  yard.Take(0, 0b0001).Take(1, 0b0001);
  EXPECT_EQ(yard.Choose(4), std::nullopt);
}

TEST(FirstFitTest, ALargeJobTakesIdleNodesAndTheFirstOtherForTheRest) {
  Yard yard(Nodes({4, 4, 4, 4}), "first-fit");
  yard.Take(0, 0b0011).Take(2, 0b0001);
  EXPECT_EQ(yard.Choose(6), Slices({At(0, 0b1100), At(1, 0b1111)}));
  EXPECT_EQ(yard.Choose(11), Slices({At(1, 0b1111), At(2, 0b1110), At(3, 0b1111)}));
}

TEST(FirstFitTest, ALargeJobNeedsIdleNodes) {
  Yard yard(Nodes({4, 4, 4}), "first-fit");
  yard.Take(0, 0b0001).Take(1, 0b0001);
  EXPECT_EQ(yard.Choose(8), std::nullopt);
}

TEST(FirstFitTest, TheRestNeedsAnotherNode) {
  Yard yard(Nodes({4, 4}), "first-fit");
  yard.Take(1, 0b1110);
  EXPECT_EQ(yard.Choose(5), Slices({At(0, 0b1111), At(1, 0b0001)}));
  EXPECT_EQ(Yard(Nodes({4, 2}), "first-fit").Choose(6), Slices({At(0, 0b1111), At(1, 0b0011)}));
}

// Two switches with two nodes each; the first node of each is not idle.
Yard TwoSwitches(const std::string& placement) {
  Cluster cluster = Nodes({4, 4, 4, 4});
  cluster.nodes[2].switch_index = 1;
  cluster.nodes[3].switch_index = 1;
  Yard yard(cluster, placement);
  yard.Take(0, 0b0111);
  yard.Take(2, 0b0011);
  return yard;
}

TEST(FirstFitTest, WithinASwitchTheFirstSwitchWithRoomIsTaken) {
  EXPECT_EQ(TwoSwitches("first-fit").Choose(6), Slices({At(1, 0b1111), At(2, 0b1100)}));
  const Yard yard = TwoSwitches("first-fit:within_switch=1");
  EXPECT_EQ(yard.Choose(5), Slices({At(0, 0b1000), At(1, 0b1111)}));
  EXPECT_EQ(yard.Choose(6), Slices({At(2, 0b1100), At(3, 0b1111)}));
}

TEST(FirstFitTest, WithinASwitchNoGangCrosses) {
  EXPECT_EQ(TwoSwitches("first-fit").Choose(8), Slices({At(1, 0b1111), At(3, 0b1111)}));
  EXPECT_EQ(TwoSwitches("first-fit:within_switch=1").Choose(8), std::nullopt);
}

TEST(FirstFitTest, CpusAreALimit) {
  Yard yard(WithCapacity(Nodes({4, 4}), 13, 0), "first-fit:cpus_alone=2,cpus_per_gpu=6");
  EXPECT_EQ(yard.Place(1), Slices({{.node = NodeAt(0), .gpus = 1, .soft = {.milli_cpus = 2000}}}));
  // 12 of the 11 CPUs that are left there.
  EXPECT_EQ(yard.Place(2), Slices({{.node = NodeAt(1), .gpus = 3, .soft = {.milli_cpus = 12000}}}));
  EXPECT_EQ(yard.Choose(2), std::nullopt);
  EXPECT_EQ(yard.Choose(3), std::nullopt);
}

TEST(FirstFitTest, TheMemoryOfAJobOnOneNodeDoesNotGrowWithIt) {
  Yard yard(WithCapacity(Nodes({4, 4}), 0, 8), "first-fit:memory_gb=5");
  EXPECT_EQ(yard.Place(3),
            Slices({{.node = NodeAt(0), .gpus = 0b0111, .soft = {.memory_mib = 5 * 1024}}}));
  EXPECT_EQ(yard.Place(1),
            Slices({{.node = NodeAt(1), .gpus = 0b0001, .soft = {.memory_mib = 5 * 1024}}}));
}

// The demands of the Tiresias simulator's yarn scheme, reference 3.
constexpr const char* kYarn =
    "first-fit:within_switch=1,cpus_alone=2,cpus_per_gpu=6,memory_gb=5,memory_gb_per_gpu=11,"
    "memory_gb_per_gpu_and_gpu=0.1";

TEST(FirstFitTest, MemoryLimitsGangsAcrossNodesTo210Gpus) {
  // 11 + 0.1 x 210 = 32 GB per GPU: 8 of them have exactly 256 GB.
  const Yard yard(WithCapacity(Nodes(std::vector<int>(32, 8)), 64, 256), kYarn);
  const std::optional<Slices> largest = yard.Choose(210);
  ASSERT_TRUE(largest.has_value());
  ASSERT_EQ(largest->size(), 27U);
  EXPECT_EQ(largest->front().soft, (Resources{.milli_cpus = 48'000, .memory_mib = 256 * 1024}));
  EXPECT_EQ(largest->back().soft, (Resources{.milli_cpus = 12'000, .memory_mib = 64 * 1024}));
  EXPECT_EQ(yard.Choose(211), std::nullopt);
}

TEST(FirstFitTest, CapacityThatIsNotStatedIsNoLimit) {
  const Yard yard(Nodes(std::vector<int>(32, 8)), kYarn);
  const std::optional<Slices> all = yard.Choose(256);
  ASSERT_TRUE(all.has_value());
  EXPECT_EQ(all->front().soft, Resources{});
}

// ----------------------------------------------------------------------------------------- buddy

TEST(BuddyTest, BlocksAreAlignedToTheirSize) {
  Yard yard(Nodes({8}), "buddy");
  yard.Take(0, 0b00000001);
  EXPECT_EQ(yard.Choose(1), Slices({At(0, 0b00000010)}));
  EXPECT_EQ(yard.Choose(2), Slices({At(0, 0b00001100)}));
  EXPECT_EQ(yard.Choose(4), Slices({At(0, 0b11110000)}));
}

TEST(BuddyTest, FreeGpusThatAreNoBuddiesDoNotMakeABlock) {
  Yard yard(Nodes({4}), "buddy");
  yard.Take(0, 0b1001);
  EXPECT_EQ(yard.Choose(2), std::nullopt);
}

TEST(BuddyTest, AnOddGangNeedsTheNextPowerOfTwo) {
  Yard yard(Nodes({8}), "buddy");
  yard.Take(0, 0b00000001);
  EXPECT_EQ(yard.Choose(3), Slices({At(0, 0b01110000)}));
  yard.Take(0, 0b10000000);
  EXPECT_EQ(yard.Choose(3), std::nullopt);
}

TEST(BuddyTest, WhatAnOddGangLeavesOfItsBlockCanBeUsed) {
  Yard yard(Nodes({4}), "buddy");
  EXPECT_EQ(yard.Place(3), Slices({At(0, 0b0111)}));
  EXPECT_EQ(yard.Place(1), Slices({At(0, 0b1000)}));
}

TEST(BuddyTest, TheNodeWithTheFewestFreeGpusThatHasABlockIsTaken) {
  Yard yard(Nodes({4, 4, 4}), "buddy");
  yard.Take(1, 0b0001).Take(2, 0b0101);
  EXPECT_EQ(yard.Choose(1), Slices({At(2, 0b0010)}));
  EXPECT_EQ(yard.Choose(2), Slices({At(1, 0b1100)}));  // node 2 has two, but no block
}

TEST(BuddyTest, AJobOfANodeTakesAnIdleOne) {
  Yard yard(Nodes({4, 4}), "buddy");
  yard.Take(0, 0b0001);
  EXPECT_EQ(yard.Choose(4), Slices({At(1, 0b1111)}));
  yard.Take(1, 0b1000);
  EXPECT_EQ(yard.Choose(4), std::nullopt);
}

TEST(BuddyTest, ALargerJobTakesIdleNodesOnly) {
  Yard yard(Nodes({4, 4, 4}), "buddy");
  yard.Take(1, 0b0001);
  EXPECT_EQ(yard.Choose(6), Slices({At(0, 0b1111), At(2, 0b0011)}));
  EXPECT_EQ(yard.Choose(9), std::nullopt);
}

TEST(BuddyTest, ANodeThatIsNoPowerOfTwoIsUsedToItsEnd) {
  Yard yard(Nodes({6, 8}), "buddy");
  yard.Take(0, 0b001111);
  EXPECT_EQ(yard.Choose(2), Slices({At(0, 0b110000)}));
}

TEST(BuddyTest, PowersOfTwoNeverFragment) {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    Yard yard(Nodes({8, 8, 8, 8}), "buddy");
    for (int left = 32; left > 0;) {
      const int gpus = 1 << (random() % 4);
      const bool fits = gpus <= left;
      ASSERT_EQ(yard.Place(gpus).has_value(), fits)
          << "round " << round << ": " << gpus << " of " << left;
      left -= fits ? gpus : 0;
    }
  }
}

TEST(BuddyTest, WhatIsGivenBackJoinsItsBuddy) {
  std::mt19937 random(3);
  Yard yard(Nodes({8, 8}), "buddy");
  std::vector<Slices> held;
  for (int step = 0; step < 5000; ++step) {
    if (!held.empty() && random() % 2 == 0) {
      const std::size_t one = random() % held.size();
      yard.free().Return(held[one]);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(one));
      continue;
    }
    const int gpus = 1 << (random() % 4);
    bool block_free = false;
    for (std::size_t node = 0; node < 2; ++node) {
      for (int first = 0; first < 8; first += gpus) {
        const std::uint64_t block = ((std::uint64_t{1} << gpus) - 1) << first;
        block_free = block_free || (yard.free().gpus(NodeAt(node)) & block) == block;
      }
    }
    const std::optional<Slices> slices = yard.Place(gpus);
    ASSERT_EQ(slices.has_value(), block_free) << "step " << step << ": " << gpus;
    if (slices) {
      ASSERT_EQ(slices->size(), 1U);
      held.push_back(*slices);
    }
  }
}

// ----------------------------------------------------------------------------- what all promise

class EveryPlacement : public testing::TestWithParam<std::string> {};

// Free, complete, in node order and no node twice, on random states of mixed nodes.
TEST_P(EveryPlacement, WhatItChoosesIsFreeCompleteAndInNodeOrder) {
  std::mt19937 random(4);
  int chosen = 0;
  for (int round = 0; round < 2000; ++round) {
    Cluster cluster = WithCapacity(Nodes({8, 4, 8, 6, 1, 8}), 24, 64);
    cluster.nodes[4].switch_index = 1;
    cluster.nodes[5].switch_index = 1;
    Yard yard(cluster, GetParam());
    for (std::size_t node = 0; node < cluster.nodes.size(); ++node) {
      const std::uint64_t all = (std::uint64_t{1} << cluster.nodes[node].gpus) - 1;
      if (random() % 3 != 0) {
        yard.Take(node, random() & all);
      } else if (random() % 4 == 0) {
        yard.free().SetUp(NodeAt(node), false);
      }
    }
    if (yard.free().total() == 0) {
      continue;
    }
    const int gpus = 1 + static_cast<int>(random() % static_cast<unsigned>(yard.free().total()));
    const std::optional<Slices> slices = yard.Choose(gpus);
    if (!slices) {
      continue;
    }
    ++chosen;
    ASSERT_TRUE(yard.free().AreFree(*slices)) << "round " << round;
    int sum = 0;
    for (std::size_t i = 0; i < slices->size(); ++i) {
      ASSERT_NE((*slices)[i].gpus, 0U);
      ASSERT_TRUE(i == 0 || (*slices)[i - 1].node < (*slices)[i].node) << "round " << round;
      sum += std::popcount((*slices)[i].gpus);
    }
    ASSERT_EQ(sum, gpus) << "round " << round;
  }
  EXPECT_GT(chosen, 200);
}

TEST_P(EveryPlacement, TheSameStateGivesTheSameChoice) {
  Yard yard(Nodes({8, 8, 8}), GetParam());
  yard.Take(0, 0b00010001).Take(2, 0b00000001);
  for (int gpus = 1; gpus <= yard.free().total(); ++gpus) {
    EXPECT_EQ(yard.Choose(gpus), yard.Choose(gpus)) << gpus;
  }
}

// With all nodes idle anything that the cluster has can be placed.
TEST_P(EveryPlacement, AnyGangFitsIntoAnIdleClusterOfEqualNodes) {
  const Yard yard(Nodes({8, 8, 8}), GetParam());
  for (int gpus = 1; gpus <= 24; ++gpus) {
    EXPECT_TRUE(yard.Choose(gpus).has_value()) << gpus;
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, EveryPlacement,
                         testing::Values("buddy", "consolidated", "consolidated:spread=1",
                                         "first-fit", "first-fit:within_switch=1",
                                         "first-fit:cpus_alone=2,cpus_per_gpu=6,memory_gb=5"),
                         [](const testing::TestParamInfo<std::string>& one) {
                           return "case" + std::to_string(one.index);
                         });

// ------------------------------------------------------------------------------------- scattered

TEST(ScatteredTest, TakesTheFirstFreeGpusOnAnyNodes) {
  const Cluster cluster = Nodes({4, 4, 4});
  FreeGpus free(cluster);
  free.Take({At(0, 0b0111)});
  EXPECT_EQ(Named("scattered")->Choose(free, {}, For(6)),
            (Slices{At(0, 0b1000), At(1, 0b1111), At(2, 1)}));
  EXPECT_EQ(Named("scattered")->Choose(free, {}, For(10)), std::nullopt);
}

TEST(ScatteredTest, AsPublishedItOvershoots) {
  const Cluster cluster = Nodes({4, 4, 4});
  FreeGpus free(cluster);
  free.Take({At(0, 0b0111)});
  const auto placement = Named("scattered:overshoot=1");
  EXPECT_EQ(placement->Choose(free, {}, For(2)), std::nullopt);  // 1, then 3
  EXPECT_EQ(placement->Choose(free, {}, For(1)), (Slices{At(0, 0b1000)}));
  EXPECT_EQ(placement->Choose(free, {}, For(5)), (Slices{At(0, 0b1000), At(1, 0b1111)}));
}

}  // namespace
}  // namespace trainyard::placements
