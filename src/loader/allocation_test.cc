// SPDX-License-Identifier: Apache-2.0
#include "loader/allocation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace trainyard::loader {
namespace {

using Workers = std::vector<int>;

// Ratio 2.5 and so on, where a worker gives one image per second.
LoaderNeed Need(double ratio, int devices) {
  return {.gpu_rate = ratio, .worker_rate = 1, .devices = devices};
}

// Rises by `step` with each worker up to `most` workers.
LoaderDemand DemandOf(std::vector<LoaderDemand::Part> parts, double step, int most) {
  LoaderDemand demand{.parts = std::move(parts), .rates = {0}};
  for (int i = 1; i <= most; ++i) {
    demand.rates.push_back(demand.rates.back() + step * demand.devices());
  }
  return demand;
}

TEST(AllocationTest, V2GivesWhatIsWantedAndLeavesTheRest) {
  const std::vector<LoaderNeed> needs{Need(2.5, 2), Need(0.4, 1)};
  EXPECT_EQ(PublishedAllocation(AllocationRule::kV2, needs, 100), (Workers{3, 1}));
}

TEST(AllocationTest, V2TakesFromTheOneWithMostToSpare) {
  const std::vector<LoaderNeed> needs{Need(2.5, 1), Need(3.1, 1)};  // 3 + 4; 0.5 and 0.9 too many
  EXPECT_EQ(PublishedAllocation(AllocationRule::kV2, needs, 6), (Workers{3, 3}));
  EXPECT_EQ(PublishedAllocation(AllocationRule::kV2, needs, 5), (Workers{2, 3}));
  EXPECT_EQ(PublishedAllocation(AllocationRule::kV2, needs, 1), (Workers{1, 1}));
}

TEST(AllocationTest, MultiNodeGrowsInTurnsTheFastestFirst) {
  const std::vector<LoaderNeed> needs{Need(2.5, 1), Need(9.5, 1)};  // 4 + 11
  EXPECT_EQ(PublishedAllocation(AllocationRule::kMultiNode, needs, 3), (Workers{1, 2}));
  EXPECT_EQ(PublishedAllocation(AllocationRule::kMultiNode, needs, 12), (Workers{4, 8}));
}

TEST(AllocationTest, MultiNodeMayGoBeyondTheCores) {
  const std::vector<LoaderNeed> needs{Need(5, 3), Need(4, 3)};
  EXPECT_EQ(PublishedAllocation(AllocationRule::kMultiNode, needs, 16), (Workers{3, 3}));
}

TEST(AllocationTest, MultiNodeHandsOutAllCores) {
  const std::vector<LoaderNeed> needs{Need(0.5, 2)};
  EXPECT_EQ(PublishedAllocation(AllocationRule::kMultiNode, needs, 48), (Workers{24}));
}

TEST(AllocationTest, NobodyGetsNothingToDo) {
  for (const auto rule : {AllocationRule::kV2, AllocationRule::kMultiNode, AllocationRule::kCp}) {
    EXPECT_TRUE(PublishedAllocation(rule, {}, 4).empty());
  }
  EXPECT_TRUE(ExactAllocation({}, {}).empty());
}

TEST(AllocationTest, NamesAreThoseOfTheOptions) {
  EXPECT_EQ(AllocationRuleOf("multi_node"), AllocationRule::kMultiNode);
  EXPECT_EQ(NameOf(AllocationRule::kCp), "cp");
}

TEST(ExactAllocationTest, LeavesCoresFreeThatNobodyNeeds) {
  const std::vector<LoaderDemand> demands{DemandOf({{0, 2}}, 5, 3)};
  EXPECT_EQ(ExactAllocation(demands, Workers{48}), (Workers{3}));
}

TEST(ExactAllocationTest, EachNodeHasItsOwnLimit) {
  const std::vector<LoaderDemand> demands{DemandOf({{0, 1}}, 5, 8), DemandOf({{1, 1}}, 5, 8)};
  EXPECT_EQ(ExactAllocation(demands, Workers{3, 6}), (Workers{3, 6}));
}

TEST(ExactAllocationTest, AJobOnTwoNodesIsBoundByBoth) {
  const std::vector<LoaderDemand> demands{DemandOf({{0, 1}, {1, 2}}, 5, 8),
                                          DemandOf({{1, 1}}, 100, 8)};
  EXPECT_EQ(ExactAllocation(demands, Workers{9, 9}), (Workers{1, 7}));
}

TEST(ExactAllocationTest, TiesAreSpreadEvenly) {
  const std::vector<LoaderDemand> demands(3, DemandOf({{0, 1}}, 5, 8));
  EXPECT_EQ(ExactAllocation(demands, Workers{18}), (Workers{6, 6, 6}));
}

TEST(ExactAllocationTest, FewerCoresThanDevices) {
  const std::vector<LoaderDemand> demands(3, DemandOf({{0, 1}}, 5, 8));
  const Workers workers = ExactAllocation(demands, Workers{2});
  EXPECT_EQ(workers[0] + workers[1] + workers[2], 2);
  EXPECT_EQ(*std::max_element(workers.begin(), workers.end()), 1);
}

TEST(ExactAllocationTest, SettledJobsStayUnlessItPays) {
  std::vector<LoaderDemand> demands{DemandOf({{0, 1}}, 5, 8), DemandOf({{0, 1}}, 6, 8)};
  demands[0].settled = demands[1].settled = true;
  demands[0].workers = 6;
  demands[1].workers = 4;  // 30 + 24 against 2 x 5 + 8 x 6
  EXPECT_EQ(ExactAllocation(demands, Workers{10}, {.least_gain = 0.1}), (Workers{6, 4}));
  EXPECT_EQ(ExactAllocation(demands, Workers{10}, {.least_gain = 0.05}), (Workers{2, 8}));
}

TEST(ExactAllocationTest, ANewJobGetsItsPartEvenIfOthersMustChange) {
  std::vector<LoaderDemand> demands{DemandOf({{0, 1}}, 5, 8), DemandOf({{0, 1}}, 5, 8)};
  demands[0].settled = true;
  demands[0].workers = 8;
  const Workers workers = ExactAllocation(demands, Workers{8}, {.least_gain = 0.5});
  EXPECT_GE(workers[1], 1);
  EXPECT_LE(workers[0] + workers[1], 8);
}

// ------------------------------------------------------------------------------------ properties

struct Case {
  std::vector<LoaderDemand> demands;
  Workers cores;
};

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  int Int(int least, int most) {
    return least + static_cast<int>(engine_() % static_cast<unsigned>(most - least + 1));
  }
  Case MakeCase() {
    Case made;
    const int nodes = Int(1, 3);
    for (int node = 0; node < nodes; ++node) {
      made.cores.push_back(Int(0, 12));
    }
    const int jobs = Int(1, 4);
    for (int job = 0; job < jobs; ++job) {
      made.demands.push_back(MakeDemand(nodes));
    }
    return made;
  }

 private:
  LoaderDemand MakeDemand(int nodes) {
    LoaderDemand demand;
    for (int node = 0; node < nodes; ++node) {
      if (Int(0, 1) == 1) {
        demand.parts.push_back({.node = node, .devices = Int(1, 3)});
      }
    }
    if (demand.parts.empty()) {
      demand.parts.push_back({.node = Int(0, nodes - 1), .devices = Int(1, 3)});
    }
    demand.rates.push_back(Int(0, 10));
    const int levels = Int(1, 5);
    for (int level = 0; level < levels; ++level) {
      demand.rates.push_back(demand.rates.back() + Int(0, 200) / 10.0);
    }
    demand.workers = Int(0, levels);
    return demand;
  }

  std::mt19937 engine_;
};

bool Fits(const Case& made, const Workers& workers) {
  Workers left = made.cores;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    for (const LoaderDemand::Part& part : made.demands[i].parts) {
      left[static_cast<std::size_t>(part.node)] -= workers[i] * part.devices;
    }
  }
  return std::all_of(left.begin(), left.end(), [](int cores) { return cores >= 0; });
}

// Jobs that share nodes, directly or through others, with the first of them.
std::vector<std::size_t> Connected(const Case& made, std::size_t first) {
  std::vector<std::size_t> jobs{first};
  for (std::size_t next = 0; next < jobs.size(); ++next) {
    for (std::size_t other = 0; other < made.demands.size(); ++other) {
      const auto& parts = made.demands[jobs[next]].parts;
      const auto& others = made.demands[other].parts;
      const bool common = std::any_of(parts.begin(), parts.end(), [&](const auto& part) {
        return std::any_of(others.begin(), others.end(),
                           [&](const auto& theirs) { return theirs.node == part.node; });
      });
      if (common && std::find(jobs.begin(), jobs.end(), other) == jobs.end()) {
        jobs.push_back(other);
      }
    }
  }
  return jobs;
}

// The least number of workers of each job, as the rule has it: one if that fits for all connected.
Workers Least(const Case& made) {
  Workers least(made.demands.size(), 0);
  for (std::size_t i = 0; i < least.size(); ++i) {
    Workers ones(made.demands.size(), 0);
    for (const std::size_t job : Connected(made, i)) {
      ones[job] = 1;
    }
    least[i] = Fits(made, ones) ? 1 : 0;
  }
  return least;
}

std::int64_t BruteForce(const Case& made) {
  const Workers least = Least(made);
  Workers workers = least;
  std::int64_t best = -1'000'000'000;
  while (true) {
    if (Fits(made, workers)) {
      best = std::max(best, AllocationScore(made.demands, workers));
    }
    std::size_t digit = 0;
    while (digit < workers.size() &&
           workers[digit] + 1 >= static_cast<int>(made.demands[digit].rates.size())) {
      workers[digit] = least[digit];
      ++digit;
    }
    if (digit == workers.size()) {
      return best;
    }
    ++workers[digit];
  }
}

TEST(ExactAllocationTest, EqualsBruteForceAndKeepsTheLimits) {
  Random random(11);
  for (int round = 0; round < 400; ++round) {
    const Case made = random.MakeCase();
    const Workers workers = ExactAllocation(made.demands, made.cores);
    EXPECT_TRUE(Fits(made, workers)) << round;
    EXPECT_EQ(AllocationScore(made.demands, workers), BruteForce(made)) << round;
  }
}

TEST(ExactAllocationTest, HeldOrNotTheLimitsAreKept) {
  Random random(12);
  for (int round = 0; round < 200; ++round) {
    Case made = random.MakeCase();
    for (LoaderDemand& demand : made.demands) {
      demand.settled = random.Int(0, 1) == 1;
    }
    EXPECT_TRUE(Fits(made, ExactAllocation(made.demands, made.cores, {.least_gain = 0.2})));
  }
}

// Wherever a published rule stays within the cores, the optimum is no worse.
TEST(ExactAllocationTest, IsNoWorseThanThePublishedRules) {
  Random random(13);
  int compared = 0;
  for (int round = 0; round < 300; ++round) {
    const int cores = random.Int(4, 40);
    Case made{.cores = {cores}};
    std::vector<LoaderNeed> needs;
    const int jobs = random.Int(1, 5);
    for (int job = 0; job < jobs; ++job) {
      const LoaderNeed need{.gpu_rate = random.Int(10, 900) / 10.0,
                            .worker_rate = random.Int(90, 130) / 10.0,
                            .devices = random.Int(1, 4)};
      LoaderDemand demand{.parts = {{.node = 0, .devices = need.devices}}};
      for (int workers = 0; workers <= WantedWorkers(AllocationRule::kMultiNode, need); ++workers) {
        demand.rates.push_back(need.devices * std::min(need.gpu_rate, workers * need.worker_rate));
      }
      needs.push_back(need);
      made.demands.push_back(demand);
    }
    const auto exact = AllocationScore(made.demands, ExactAllocation(made.demands, made.cores));
    for (const auto rule : {AllocationRule::kV2, AllocationRule::kMultiNode}) {
      const Workers theirs = PublishedAllocation(rule, needs, cores);
      const Workers least = Least(made);
      const bool one_each = std::equal(theirs.begin(), theirs.end(), least.begin(),
                                       [](int workers, int one) { return workers >= one; });
      if (Fits(made, theirs) && one_each) {
        EXPECT_GE(exact, AllocationScore(made.demands, theirs)) << round << NameOf(rule);
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 300);
}

}  // namespace
}  // namespace trainyard::loader
