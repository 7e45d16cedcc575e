// SPDX-License-Identifier: Apache-2.0
// Synergy's mechanisms on nodes of 4 GPUs, 8 CPUs and 40 GiB: 2 CPUs and 10 GiB come with each GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <random>

#include "base/catalog_lookup.h"
#include "base/check.h"
#include "placements/placements.h"
#include "placements/synergy_round.h"
#include "support/print_slice.h"

namespace trainyard::placements {

namespace {

Cluster Nodes(std::size_t count) {
  Cluster cluster;
  for (std::size_t i = 0; i < count; ++i) {
    cluster.nodes.push_back(
        {.name = "n", .gpus = 4, .capacity = {.milli_cpus = 8000, .memory_mib = 40 * 1024}});
  }
  return cluster;
}

// Jobs that hold what a test says.
class Jobs final : public JobTable {
 public:
  [[nodiscard]] std::span<const JobId> live() const override { return {}; }
  [[nodiscard]] JobView at(JobId job) const override {
    return {.grant = Index(job) < held.size() ? &held[Index(job)] : nullptr};
  }

  std::vector<Grant> held;
};

Resources Amounts(double cpus, std::int64_t memory_gb) {
  return {.milli_cpus = static_cast<std::int64_t>(cpus * 1000), .memory_mib = memory_gb * 1024};
}
Demand Asking(std::size_t job, int gpus, double cpus, std::int64_t memory_gb) {
  return {.job = JobAt(job), .gpus = gpus, .preferred = Amounts(cpus, memory_gb)};
}
Slice On(std::size_t node, std::uint64_t gpus, double cpus, std::int64_t memory_gb) {
  return {.node = NodeAt(node), .gpus = gpus, .soft = Amounts(cpus, memory_gb)};
}

std::vector<Slices> Place(const SynergyRules& rules, const Cluster& cluster,
                          const std::vector<Demand>& demands, const Jobs& jobs = {},
                          std::optional<NodeId> down = std::nullopt) {
  FreeGpus free(cluster);
  if (down) {
    free.SetUp(*down, false);
  }
  std::vector<Slices> slices;
  SynergyRound().Place(rules, {free, demands, jobs}, slices);
  return slices;
}

constexpr SynergyRules kTune{.mechanism = Mechanism::kTune};
constexpr SynergyRules kTunePacked{.mechanism = Mechanism::kTune, .consolidate = true};
constexpr SynergyRules kFill{.mechanism = Mechanism::kFill, .consolidate = true, .keep = true};

TEST(SynergyTest, ProportionalGivesEveryoneHisShare) {
  const auto slices = Place({.mechanism = Mechanism::kProportional}, Nodes(1),
                            {Asking(0, 1, 8, 40), Asking(1, 2, 1, 1)});
  EXPECT_EQ(slices, (std::vector<Slices>{{On(0, 0b1, 2, 10)}, {On(0, 0b110, 4, 20)}}));
}

TEST(SynergyTest, GreedyGivesAllOrNothing) {
  const auto slices = Place({.mechanism = Mechanism::kGreedy}, Nodes(1),
                            {Asking(0, 1, 6, 10), Asking(1, 1, 3, 10), Asking(2, 1, 2, 10)});
  EXPECT_EQ(slices, (std::vector<Slices>{{On(0, 0b1, 6, 10)}, {}, {On(0, 0b10, 2, 10)}}));
}

TEST(SynergyTest, FirstFitSplitsAGangAndConsolidationDoesNot) {
  const std::vector<Demand> demands{Asking(0, 1, 6, 10), Asking(1, 2, 4, 20)};
  EXPECT_EQ(Place({.mechanism = Mechanism::kGreedy}, Nodes(2), demands)[1],
            (Slices{On(0, 0b10, 2, 10), On(1, 0b1, 2, 10)}));
  EXPECT_EQ(Place({.mechanism = Mechanism::kGreedy, .consolidate = true}, Nodes(2), demands),
            (std::vector<Slices>{{On(0, 0b1000, 6, 10)}, {On(1, 0b11, 4, 20)}}));
}

TEST(SynergyTest, TuneFallsBackToTheShare) {
  const auto slices = Place(kTune, Nodes(1), {Asking(0, 1, 5, 10), Asking(1, 1, 5, 10)});
  EXPECT_EQ(slices, (std::vector<Slices>{{On(0, 0b1, 5, 10)}, {On(0, 0b10, 2, 10)}}));
}

// Jobs 0 and 1 hold all CPUs; job 2 takes back from the one with the most, and no more than needed.
TEST(SynergyTest, TuneTakesBackWhatANeighbourHasBeyondItsShare) {
  const auto slices =
      Place(kTune, Nodes(1), {Asking(0, 1, 3, 10), Asking(1, 1, 5, 10), Asking(2, 1, 4, 10)});
  EXPECT_EQ(slices, (std::vector<Slices>{
                        {On(0, 0b1, 3, 10)}, {On(0, 0b10, 2, 10)}, {On(0, 0b100, 2, 10)}}));
}

TEST(SynergyTest, TuneTakesBackFromAsManyAsItNeeds) {
  const auto slices =
      Place(kTunePacked, Nodes(1), {Asking(0, 1, 4, 10), Asking(1, 1, 4, 10), Asking(2, 2, 8, 20)});
  EXPECT_EQ(slices, (std::vector<Slices>{
                        {On(0, 0b1000, 2, 10)}, {On(0, 0b100, 2, 10)}, {On(0, 0b11, 4, 20)}}));
}

// Whoever wants less than his share of one thing and more of another keeps what he wants less of.
TEST(SynergyTest, GivingBackRaisesNothing) {
  const auto slices =
      Place(kTune, Nodes(1),
            {Asking(0, 1, 7, 1), Asking(1, 1, 1, 39), Asking(2, 1, 2, 10), Asking(3, 1, 2, 10)});
  EXPECT_EQ(slices, (std::vector<Slices>{{On(0, 0b1, 2, 1)},
                                         {On(0, 0b10, 1, 10)},
                                         {On(0, 0b100, 2, 10)},
                                         {On(0, 0b1000, 2, 10)}}));
}

TEST(SynergyTest, FillHandsOutTheRestInOrder) {
  const auto slices =
      Place(kFill, Nodes(1), {Asking(0, 1, 5, 20), Asking(1, 1, 5, 10), Asking(2, 1, 1, 5)});
  EXPECT_EQ(slices, (std::vector<Slices>{
                        {On(0, 0b1000, 5, 20)}, {On(0, 0b100, 2, 10)}, {On(0, 0b10, 1, 5)}}));
}

TEST(SynergyTest, FillGivesAllGpusOfAGangTheSame) {
  Jobs jobs;
  jobs.held = {{.gpus = 2, .slices = {On(0, 0b1, 0, 0), On(1, 0b1, 0, 0)}},
               {.gpus = 3, .slices = {On(0, 0b1110, 0, 0)}}};
  const auto slices = Place(kFill, Nodes(2), {Asking(0, 2, 12, 20), Asking(1, 3, 3, 3)}, jobs);
  EXPECT_EQ(slices[0], (Slices{On(0, 0b1, 5, 10), On(1, 0b1, 5, 10)}));
}

TEST(SynergyTest, FillLeavesRunningJobsWhereTheyAre) {
  Jobs jobs;
  jobs.held = {{}, {.gpus = 2, .slices = {On(1, 0b110, 4, 20)}}};
  const auto slices = Place(kFill, Nodes(2), {Asking(0, 1, 2, 10), Asking(1, 2, 4, 20)}, jobs);
  EXPECT_EQ(slices, (std::vector<Slices>{{On(1, 0b1000, 2, 10)}, {On(1, 0b110, 4, 20)}}));
}

TEST(SynergyTest, ARunningJobOutrankedByCountLosesItsGpus) {
  Jobs jobs;
  jobs.held = {{}, {.gpus = 1, .slices = {On(0, 0b1, 2, 10)}}};
  const auto slices = Place(kFill, Nodes(1), {Asking(0, 4, 8, 40), Asking(1, 1, 2, 10)}, jobs);
  EXPECT_EQ(slices, (std::vector<Slices>{{On(0, 0b1111, 8, 40)}, {}}));
}

TEST(SynergyTest, LentCpusComeFromAnyNode) {
  const auto slices = Place({.mechanism = Mechanism::kLend}, Nodes(2),
                            {Asking(0, 1, 7, 10), Asking(1, 2, 5, 10), Asking(2, 4, 4, 10)});
  EXPECT_EQ(slices[0], (Slices{On(0, 0b1, 7, 10)}));
  EXPECT_EQ(slices[1], (Slices{On(0, 0b110, 1, 10), On(1, 0, 4, 0)}));
  EXPECT_EQ(slices[2], (Slices{On(0, 0b1000, 0, 10), On(1, 0b111, 4, 0)}));
}

// Job 0 holds CPUs of node 1 that job 1, which has come there since, needs beside its GPU.
TEST(SynergyTest, ALentCpuGoesBackToTheGpusOfItsNode) {
  Jobs jobs;
  jobs.held = {{.gpus = 1, .slices = {On(0, 0b1, 8, 10), On(1, 0, 4, 0)}},
               {.gpus = 1, .slices = {On(1, 0b1, 4, 10)}}};
  const std::vector<Demand> demands{Asking(0, 1, 12, 10), Asking(1, 1, 6, 10)};
  const SynergyRules lend{.mechanism = Mechanism::kLend, .keep = true};
  EXPECT_EQ(Place(lend, Nodes(2), demands, jobs),
            (std::vector<Slices>{{On(0, 0b1, 8, 10), On(1, 0, 2, 0)}, {On(1, 0b1, 6, 10)}}));
  // Nor does it hold anything of a node that is down.
  jobs.held.pop_back();
  EXPECT_EQ(Place(lend, Nodes(2), {demands[0]}, jobs, NodeAt(1)),
            (std::vector<Slices>{{On(0, 0b1, 8, 10)}}));
}

TEST(SynergyTest, NodesThatAreDownLendNothing) {
  const auto slices = Place({.mechanism = Mechanism::kLend}, Nodes(2),
                            {Asking(0, 1, 7, 10), Asking(1, 2, 5, 10)}, {}, NodeAt(1));
  EXPECT_EQ(slices[0], (Slices{On(0, 0b1, 7, 10)}));
  EXPECT_EQ(slices[1], (Slices{On(0, 0b110, 1, 10)}));
}

TEST(SynergyTest, OptionsNameTheMechanism) {
  const auto wrong = base::MakeFrom(Placements(), ComponentKind::kPlacement,
                                    ParseNamedOptions("synergy:mechanism=best").value());
  ASSERT_FALSE(wrong.ok());
  const auto right = base::MakeFrom(Placements(), ComponentKind::kPlacement,
                                    ParseNamedOptions("synergy:mechanism=tune").value());
  ASSERT_TRUE(right.ok());
  EXPECT_TRUE(right.value().packer);
  EXPECT_FALSE(right.value().placement);
}

// ------------------------------------------------------------------------------- random rounds

struct RandomCase {
  Cluster cluster;
  std::vector<Demand> demands;
};

RandomCase Draw(std::mt19937& random) {
  const auto below = [&random](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
  };
  RandomCase drawn;
  const std::int64_t nodes = 1 + below(5);
  for (std::int64_t i = 0; i < nodes; ++i) {
    const int gpus = 1 + static_cast<int>(below(8));
    drawn.cluster.nodes.push_back(
        {.name = "n",
         .gpus = gpus,
         .capacity = {.milli_cpus = below(4) == 0 ? 0 : 1000 * gpus + below(20000),
                      .memory_mib = 1024 * gpus + below(99999),
                      .storage_kbps = below(2) * 100000}});
  }
  const std::int64_t jobs = 1 + below(12);
  for (std::int64_t i = 0; i < jobs; ++i) {
    const int gpus = 1 + static_cast<int>(below(9));
    drawn.demands.push_back({.job = JobAt(static_cast<std::size_t>(i)),
                             .gpus = gpus,
                             .preferred = {.milli_cpus = below(7000) * gpus,
                                           .memory_mib = below(30000) * gpus,
                                           .storage_kbps = below(30000) * gpus}});
  }
  return drawn;
}

// The share of a GPU, by the node that brings the least.
Resources ShareOf(const Cluster& cluster) {
  Resources least{};
  for (const auto member :
       {&Resources::milli_cpus, &Resources::memory_mib, &Resources::storage_kbps}) {
    std::int64_t share = -1;
    for (const NodeSpec& node : cluster.nodes) {
      const std::int64_t of_node = node.capacity.*member / node.gpus;
      share = node.capacity.*member > 0 && (share < 0 || of_node < share) ? of_node : share;
    }
    least.*member = std::max<std::int64_t>(share, 0);
  }
  return least;
}

bool WithinCapacity(const Cluster& cluster, const std::vector<Slices>& placed) {
  FreeGpus free(cluster);
  for (const Slices& slices : placed) {
    for (const Slice& slice : slices) {
      if ((free.gpus(slice.node) & slice.gpus) != slice.gpus) {
        return false;
      }
    }
    free.Take(slices);
  }
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
    const Resources& left = free.resources(NodeAt(i));
    if (left.milli_cpus < 0 || left.memory_mib < 0 || left.storage_kbps < 0) {
      return false;
    }
  }
  return true;
}

// At least the smaller of demand and share, on every slice.
bool HasItsFloor(const Cluster& cluster, const Demand& demand, const Slices& slices) {
  const Resources share = ShareOf(cluster);
  return std::all_of(slices.begin(), slices.end(), [&](const Slice& slice) {
    const Resources& capacity = cluster.nodes[Index(slice.node)].capacity;
    const auto enough = [&](std::int64_t Resources::*member) {
      const std::int64_t least = std::min(demand.preferred.*member / demand.gpus, share.*member) *
                                 std::popcount(slice.gpus);
      return capacity.*member == 0 || slice.soft.*member >= least;
    };
    return enough(&Resources::milli_cpus) && enough(&Resources::memory_mib) &&
           enough(&Resources::storage_kbps);
  });
}

int GpusOf(const Slices& slices) {
  int gpus = 0;
  for (const Slice& slice : slices) {
    gpus += std::popcount(slice.gpus);
  }
  return gpus;
}

class SynergyRounds : public testing::TestWithParam<SynergyRules> {};

TEST_P(SynergyRounds, KeepTheirPromises) {
  std::mt19937 random(11);
  for (int i = 0; i < 3000; ++i) {
    const RandomCase drawn = Draw(random);
    const auto placed = Place(GetParam(), drawn.cluster, drawn.demands);
    ASSERT_EQ(placed.size(), drawn.demands.size());
    ASSERT_TRUE(WithinCapacity(drawn.cluster, placed)) << i;
    int left = drawn.cluster.total_gpus();
    for (std::size_t job = 0; job < placed.size(); ++job) {
      const Demand& demand = drawn.demands[job];
      if (GetParam().mechanism == Mechanism::kTune || GetParam().mechanism == Mechanism::kFill) {
        // Whoever fits by count finds a place, and with it his floor.
        ASSERT_EQ(!placed[job].empty(), demand.gpus <= left) << i << " job " << job;
        ASSERT_TRUE(HasItsFloor(drawn.cluster, demand, placed[job])) << i << " job " << job;
      }
      ASSERT_TRUE(placed[job].empty() || GpusOf(placed[job]) == demand.gpus);
      left -= GpusOf(placed[job]);
    }
  }
}

// So many of the first demands are the same.
std::size_t SameAs(const std::vector<Demand>& before, const std::vector<Demand>& after) {
  return static_cast<std::size_t>(
      std::mismatch(before.begin(), before.end(), after.begin(), after.end(),
                    [](const Demand& a, const Demand& b) {
                      return a.job == b.job && a.gpus == b.gpus && a.preferred == b.preferred;
                    })
          .first -
      before.begin());
}

TEST_P(SynergyRounds, PlaceAsIfForTheFirstTime) {
  std::mt19937 random(12);
  for (int i = 0; i < 300; ++i) {
    const RandomCase drawn = Draw(random);
    const FreeGpus free(drawn.cluster);
    const Jobs jobs;
    SynergyRound round;
    std::vector<Demand> before;
    std::vector<Demand> demands = drawn.demands;
    std::vector<Slices> slices;
    for (int turn = 0; turn < 30; ++turn) {
      const std::size_t same = GetParam().keep ? 0 : SameAs(before, demands);
      round.Place(GetParam(), {free, demands, jobs, same}, slices);
      ASSERT_EQ(slices, Place(GetParam(), drawn.cluster, demands)) << i << " turn " << turn;
      before = demands;
      const auto any = [&] {
        return demands.begin() + static_cast<std::ptrdiff_t>(random() % (demands.size() + 1));
      };
      if (random() % 2 == 0 && demands.size() > 1) {
        demands.erase(std::min(any(), demands.end() - 1));
      } else if (!drawn.demands.empty()) {
        Demand more = drawn.demands[random() % drawn.demands.size()];
        more.job = JobAt(1000 + static_cast<std::size_t>(turn));
        demands.insert(any(), more);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, SynergyRounds,
    testing::Values(kTune, kTunePacked, kFill, SynergyRules{.mechanism = Mechanism::kProportional},
                    SynergyRules{.mechanism = Mechanism::kGreedy},
                    SynergyRules{.mechanism = Mechanism::kGreedy, .consolidate = true},
                    SynergyRules{.mechanism = Mechanism::kLend}));

}  // namespace
}  // namespace trainyard::placements
