// SPDX-License-Identifier: Apache-2.0
// Elastic EDF on hand-made jobs whose throughput depends on their model and GPU count.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "policies/policies.h"
#include "support/hand_made_jobs.h"

namespace trainyard::policies {
namespace {

constexpr auto kNone = std::nullopt;

// What the policy gives to jobs that were added by hand.
class ElasticEdfTest : public testing::Test {
 protected:
  ElasticEdfTest() {
    rates_.Set("peak4", {{1, 1}, {2, 1.8}, {4, 3}, {8, 2.5}});
    rates_.Set("linear", {{1, 1}, {2, 2}, {4, 4}, {8, 8}});
  }

  JobView& Add(const std::string& model, std::optional<double> deadline, double work_left = 1000) {
    JobSpec spec{.name = "job", .model = model};
    if (deadline) {
      spec.deadline = AtSeconds(*deadline);
    }
    JobView& job = jobs_.Add(spec);
    job.work_left = work_left;
    return job;
  }

  [[nodiscard]] Proposal Decide(int gpus, const std::string& options = "") const {
    const Result<Components> policy = TryPolicy("elastic-edf" + options);
    EXPECT_TRUE(policy.ok()) << policy.error().message;
    return policy.value().policy->Decide(
        {.now = AtSeconds(0), .gpus_up = gpus, .jobs = &jobs_, .rates = &rates_}, nullptr);
  }

  // GPUs by job.
  [[nodiscard]] std::vector<int> Gpus(int gpus, const std::string& options = "") const {
    std::vector<int> given(jobs_.live().size(), 0);
    for (const Demand& demand : Decide(gpus, options).demands) {
      EXPECT_EQ(given[Index(demand.job)], 0) << "named twice";
      given[Index(demand.job)] = demand.gpus;
    }
    return given;
  }

  Profiles rates_;
  HandMadeJobs jobs_;
};

using Shares = std::vector<int>;

TEST_F(ElasticEdfTest, NeedsProfilesAndSetsGpuCounts) {
  const Result<Components> policy = TryPolicy("elastic-edf");
  EXPECT_TRUE(policy.value().policy->traits().may.resize);
}

TEST_F(ElasticEdfTest, ASingleJobGetsItsUsefulMaximum) {
  (void)Add("peak4", 500);
  EXPECT_EQ(Gpus(8), Shares({4}));
}

TEST_F(ElasticEdfTest, PastThePeakItGetsTheLargestLevel) {
  (void)Add("peak4", 500);
  EXPECT_EQ(Gpus(8, ":past_peak=1"), Shares({8}));
}

TEST_F(ElasticEdfTest, EqualRatesAreReachedWithFewerGpus) {
  rates_.Set("flat", {{1, 1}, {2, 3}, {4, 3}});
  (void)Add("flat", 500);
  EXPECT_EQ(Gpus(8), Shares({2}));
}

TEST_F(ElasticEdfTest, NoJobGetsMoreGpusThanItsBatch) {
  JobSpec spec{.name = "job", .model = "linear", .batch_size = 2};
  jobs_.Add(spec).work_left = 1000;
  EXPECT_EQ(Gpus(8), Shares({2}));
  EXPECT_EQ(Gpus(8, ":past_peak=1"), Shares({2}));
}

TEST_F(ElasticEdfTest, NoJobGetsMoreThan64Gpus) {
  rates_.Set("huge", {{64, 64}, {128, 128}});
  (void)Add("huge", 500);
  EXPECT_EQ(Gpus(256), Shares({64}));
}

TEST_F(ElasticEdfTest, NoLevelIsAboveTheGpusThatAreUp) {
  (void)Add("linear", 500);
  EXPECT_EQ(Gpus(6), Shares({4}));
  EXPECT_EQ(Gpus(6, ":past_peak=1"), Shares({4}));
}

TEST_F(ElasticEdfTest, AJobThatRunsOnNoneOfTheGpusGetsNothing) {
  rates_.Set("wide", {{4, 1}, {8, 2}});
  (void)Add("wide", 100);
  (void)Add("linear", 500);
  EXPECT_EQ(Gpus(2), Shares({0, 2}));
}

TEST_F(ElasticEdfTest, TheEarlierDeadlineIsServedFirst) {
  (void)Add("linear", 900);
  (void)Add("linear", 500);
  EXPECT_EQ(Gpus(8), Shares({0, 8}));
}

TEST_F(ElasticEdfTest, LaterJobsGetTheLargestLevelThatIsFree) {
  (void)Add("peak4", 500);
  (void)Add("linear", 900);
  EXPECT_EQ(Gpus(7), Shares({4, 2}));
}

TEST_F(ElasticEdfTest, WhatOneJobCannotUseGoesToTheNext) {
  (void)Add("linear", 500);
  (void)Add("linear", 600);
  (void)Add("linear", 700);
  EXPECT_EQ(Gpus(15), Shares({8, 4, 2}));
}

TEST_F(ElasticEdfTest, JobsWithoutADeadlineComeLast) {
  (void)Add("linear", kNone);
  (void)Add("linear", 1e9);
  EXPECT_EQ(Gpus(8), Shares({0, 8}));
}

TEST_F(ElasticEdfTest, EqualDeadlinesKeepTheOrderOfTheEngine) {
  (void)Add("linear", 500);
  (void)Add("linear", 500);
  EXPECT_EQ(Gpus(8), Shares({8, 0}));
}

TEST_F(ElasticEdfTest, ALateJobKeepsItsPlace) {
  (void)Add("linear", 500);
  (void)Add("linear", -100);
  EXPECT_EQ(Gpus(8), Shares({0, 8}));
}

TEST_F(ElasticEdfTest, DemandsAreInOrderOfDeadlineForPlacingTheLargestFirst) {
  (void)Add("linear", 700);
  (void)Add("peak4", 500);
  const Proposal proposal = Decide(8);
  ASSERT_EQ(proposal.demands.size(), 2U);
  EXPECT_EQ(proposal.demands[0].job, JobAt(1));
  EXPECT_TRUE(proposal.walk.largest_first);
}

class ElasticEdfRandomTest : public ElasticEdfTest {
 protected:
  // In order of deadline each job has the largest level that is free, and at most its cap.
  [[nodiscard]] Shares Greedy(int gpus, bool past_peak) const {
    std::vector<JobId> order(jobs_.live().begin(), jobs_.live().end());
    std::stable_sort(order.begin(), order.end(), [this](JobId a, JobId b) {
      return *jobs_.at(a).spec->deadline < *jobs_.at(b).spec->deadline;
    });
    Shares shares(order.size(), 0);
    int free = gpus;
    for (const JobId id : order) {
      const JobSpec& spec = *jobs_.at(id).spec;
      int cap = 0;
      for (const int level : rates_.Levels(spec)) {
        const bool better =
            cap == 0 || past_peak || rates_.Rate(spec, level) > rates_.Rate(spec, cap);
        cap = level <= gpus && better ? level : cap;
      }
      for (const int level : rates_.Levels(spec)) {
        shares[Index(id)] = level <= std::min(cap, free) ? level : shares[Index(id)];
      }
      free -= shares[Index(id)];
    }
    return shares;
  }
};

TEST_F(ElasticEdfRandomTest, TheLargestFreeLevelsAreGiven) {
  std::mt19937 random(3);
  for (int round = 0; round < 5000; ++round) {
    jobs_ = HandMadeJobs();
    const int gpus = 1 << (random() % 5);
    const auto count = 1 + random() % 9;
    for (unsigned i = 0; i < count; ++i) {
      (void)Add(random() % 2 == 0 ? "peak4" : "linear", static_cast<double>(random() % 300),
                1 + static_cast<double>(random() % 400));
    }
    for (const bool past_peak : {false, true}) {
      ASSERT_EQ(Gpus(gpus, past_peak ? ":past_peak=1" : ""), Greedy(gpus, past_peak)) << round;
    }
  }
}

}  // namespace
}  // namespace trainyard::policies
