// SPDX-License-Identifier: Apache-2.0
#include "policies/optimus/marginal_gains.h"

#include <gtest/gtest.h>

#include <random>

namespace trainyard::policies {
namespace {

using Prospects = std::vector<Prospect>;

// GPUs by job.
std::vector<int> Chosen(const std::vector<Prospects>& jobs, int free) {
  const std::vector<std::size_t> chosen = ChooseByGain(jobs, free);
  EXPECT_EQ(chosen.size(), jobs.size());
  std::vector<int> gpus;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    gpus.push_back(jobs[i].at(chosen[i]).gpus);
  }
  return gpus;
}

using Gpus = std::vector<int>;

TEST(MarginalGainsTest, NoJobsTakeNothing) { EXPECT_TRUE(ChooseByGain({}, 8).empty()); }

TEST(MarginalGainsTest, WithoutFreeGpusEverybodyStaysAtTheFirst) {
  EXPECT_EQ(Chosen({{{1, 100}, {2, 10}}, {{4, 100}, {8, 10}}}, 0), Gpus({1, 4}));
}

TEST(MarginalGainsTest, GpusGoWhereTheySaveMostEach) {
  // 40 s for one GPU; 30 s for each of two, then 30 s for one.
  EXPECT_EQ(Chosen({{{1, 100}, {2, 60}}, {{1, 200}, {3, 140}}}, 1), Gpus({2, 1}));
  EXPECT_EQ(Chosen({{{1, 100}, {2, 60}}, {{1, 200}, {3, 140}}}, 2), Gpus({2, 1}));
  EXPECT_EQ(Chosen({{{1, 100}, {2, 60}}, {{1, 200}, {3, 140}}}, 3), Gpus({2, 3}));
}

TEST(MarginalGainsTest, ReturnsThatFallLetOthersPass) {
  const Prospects job{{1, 120}, {2, 60}, {3, 40}, {4, 30}};
  EXPECT_EQ(Chosen({job, job}, 2), Gpus({2, 2}));
  EXPECT_EQ(Chosen({job, job}, 3), Gpus({3, 2}));
  EXPECT_EQ(Chosen({job, {{1, 12}, {2, 6}}}, 3), Gpus({4, 1}));
}

TEST(MarginalGainsTest, WhoGainsNothingOrLosesGetsNoMore) {
  EXPECT_EQ(Chosen({{{1, 100}, {2, 100}, {4, 100}}}, 8), Gpus({1}));
  EXPECT_EQ(Chosen({{{1, 100}, {2, 110}, {4, 120}}}, 8), Gpus({1}));
}

TEST(MarginalGainsTest, AStepPassesOverProspectsThatGainLess) {
  EXPECT_EQ(Chosen({{{1, 100}, {2, 105}, {4, 40}, {8, 39}}}, 3), Gpus({4}));
  EXPECT_EQ(Chosen({{{1, 100}, {2, 105}, {4, 40}}}, 2), Gpus({1})) << "too far";
  EXPECT_EQ(Chosen({{{1, 100}, {2, 99}, {4, 40}}}, 2), Gpus({2})) << "as far as it goes";
}

TEST(MarginalGainsTest, GapsAreFilledByWhoFits) {
  EXPECT_EQ(Chosen({{{1, 1000}, {16, 10}}, {{1, 20}, {2, 19}, {4, 18}}}, 7), Gpus({1, 4}));
}

TEST(MarginalGainsTest, OfEqualGainsTheFirstJobHasTheNearestStep) {
  const Prospects even{{1, 100}, {2, 90}, {3, 80}};
  EXPECT_EQ(Chosen({even, even}, 1), Gpus({2, 1}));
  EXPECT_EQ(Chosen({even, even}, 3), Gpus({3, 2}));
}

// The same without a heap: everybody is asked before each step.
std::vector<std::size_t> Plainly(const std::vector<Prospects>& jobs, int free) {
  std::vector<std::size_t> chosen(jobs.size(), 0);
  while (true) {
    double best = 0;
    std::size_t who = 0;
    std::size_t where = 0;
    for (std::size_t job = 0; job < jobs.size(); ++job) {
      const Prospect& now = jobs[job][chosen[job]];
      for (std::size_t to = chosen[job] + 1; to < jobs[job].size(); ++to) {
        const int more = jobs[job][to].gpus - now.gpus;
        const double gain = (now.seconds - jobs[job][to].seconds) / more;
        if (more <= free && gain > best) {
          best = gain;
          who = job;
          where = to;
        }
      }
    }
    if (best <= 0) {
      return chosen;
    }
    free -= jobs[who][where].gpus - jobs[who][chosen[who]].gpus;
    chosen[who] = where;
  }
}

TEST(MarginalGainsTest, EqualsTheGreedyThatAsksEverybody) {
  std::mt19937 random(11);
  for (int round = 0; round < 5000; ++round) {
    std::vector<Prospects> jobs(1 + random() % 8);
    for (Prospects& job : jobs) {
      int gpus = 1 + static_cast<int>(random() % 3);
      for (unsigned i = 0; i < 1 + random() % 6; ++i) {
        job.push_back({.gpus = gpus, .seconds = static_cast<double>(random() % 60)});
        gpus += 1 + static_cast<int>(random() % 5);
      }
      if (job.empty()) {
        job.push_back({.gpus = 1, .seconds = 1});
      }
    }
    const int free = static_cast<int>(random() % 40);
    const std::vector<std::size_t> chosen = ChooseByGain(jobs, free);
    ASSERT_EQ(chosen, Plainly(jobs, free)) << round;
    int added = 0;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      added += jobs[i][chosen[i]].gpus - jobs[i].front().gpus;
    }
    ASSERT_LE(added, free) << round;
  }
}

}  // namespace
}  // namespace trainyard::policies
