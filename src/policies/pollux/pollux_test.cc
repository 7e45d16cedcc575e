// SPDX-License-Identifier: Apache-2.0
// Pollux on hand-made jobs: by what they report, by their profiles, and over time.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>
#include <string>

#include "policies/policies.h"
#include "policies/pollux/speedups.h"
#include "profile/goodput/goodput_report.h"
#include "support/equal_costs.h"
#include "support/hand_made_jobs.h"

namespace trainyard::policies {
namespace {

// Of a training that scales well, the better the noisier it is.
profile::GoodputReport ReportOf(int tried, double noise) {
  return {.model = {.times = {.alpha_compute = 0.02,
                              .beta_compute = 0.002,
                              .alpha_network = 0.05,
                              .beta_network = 0.001,
                              .alpha_node = 0.01,
                              .beta_node = 0.0005,
                              .gamma = 2},
                    .noise = {.square = 1, .variance = noise},
                    .limits = {.initial = 64, .most = 4096, .least_part = 16, .most_part = 256}},
          .tried_gpus = tried};
}

class PolluxTest : public testing::Test {
 protected:
  PolluxTest() {
    profiles_.Set("linear", {{1, 1}, {2, 2}, {4, 4}, {8, 8}});
    profiles_.Set("poor", {{1, 1}, {2, 1.1}, {4, 1.15}});
    profiles_.Set("wide", {{4, 1}, {8, 2}});
    Use("", 2, 4);
  }
  void Use(const std::string& options, int nodes, int gpus_per_node) {
    Result<Components> made = TryPolicy("pollux" + options);
    ASSERT_TRUE(made.ok()) << made.error().message;
    policy_ = std::move(made.value().policy);
    memory_ = policy_->NewMemory();
    jobs_ = ChangingJobs();
    cluster_ = {};
    for (int i = 0; i < nodes; ++i) {
      cluster_.nodes.push_back({.name = std::to_string(i), .gpus = gpus_per_node});
    }
  }
  JobId Add(const std::string& model) { return jobs_.Add({.name = "job", .model = model}).id; }
  void Report(JobId job, const profile::GoodputReport& report) {
    reported_[job] = MetricsOf(report);
    jobs_.view(job).reported = reported_[job];
  }

  // GPUs by job.
  std::map<JobId, int> Decide(double now) {
    const Proposal proposal = policy_->Decide({.now = AtSeconds(now),
                                               .cluster = &cluster_,
                                               .gpus_up = cluster_.total_gpus(),
                                               .jobs = &jobs_,
                                               .rates = &profiles_,
                                               .costs = &costs_},
                                              memory_.get());
    wake_ = proposal.wake_at ? Seconds(*proposal.wake_at) : -1;
    jobs_.Hold(proposal.demands);
    std::map<JobId, int> gpus;
    std::vector<std::uint64_t> taken(cluster_.nodes.size());
    for (const Demand& demand : proposal.demands) {
      gpus[demand.job] = demand.gpus;
      int named = 0;
      for (const Slice& slice : demand.slices) {
        EXPECT_EQ(taken[Index(slice.node)] & slice.gpus, 0U) << "given twice";
        taken[Index(slice.node)] |= slice.gpus;
        named += std::popcount(slice.gpus);
        EXPECT_LT(std::bit_width(slice.gpus), 1 + cluster_.nodes[Index(slice.node)].gpus);
      }
      EXPECT_EQ(named, demand.gpus);
    }
    return gpus;
  }

  Profiles profiles_;
  EqualCosts costs_{FromSeconds(30)};
  Cluster cluster_;
  ChangingJobs jobs_;
  std::map<JobId, std::vector<Metric>> reported_;
  std::unique_ptr<Policy> policy_;
  std::unique_ptr<Memory> memory_;
  double wake_ = -1;
};

TEST_F(PolluxTest, BadOptionsAreRefused) {
  EXPECT_EQ(PolicyError("pollux:interval=0"),
            "policy 'pollux': interval must lie between 1 and 1e9 seconds");
  EXPECT_EQ(PolicyError("pollux:seed=1.5"),
            "policy 'pollux': seed must be a whole number from 0 to 1e15");
}

TEST_F(PolluxTest, WithoutJobsThereIsNothingToDo) {
  EXPECT_TRUE(Decide(0).empty());
  EXPECT_EQ(wake_, -1);
}

TEST_F(PolluxTest, GpusAreNamedAtEachIntervalAndKeptInBetween) {
  const JobId first = Add("linear");
  EXPECT_EQ(Decide(0), (std::map<JobId, int>{{first, 8}}));
  EXPECT_EQ(wake_, 60);
  (void)Add("linear");
  EXPECT_EQ(Decide(30), (std::map<JobId, int>{{first, 8}})) << "the other one waits";
  EXPECT_EQ(wake_, 60);
  EXPECT_EQ(Decide(60).size(), 2U);
}

TEST_F(PolluxTest, JobsThatReportNothingGoByTheirProfiles) {
  const JobId linear = Add("linear");
  const JobId poor = Add("poor");
  const std::map<JobId, int> gpus = Decide(0);
  EXPECT_GE(gpus.at(linear), 4);
  EXPECT_LE(gpus.at(poor), 4);
  EXPECT_GE(gpus.at(poor), 1);
  for (const auto& [job, count] : gpus) {
    EXPECT_TRUE(std::has_single_bit(static_cast<unsigned>(count))) << count << " has no rate";
  }
}

TEST_F(PolluxTest, AJobThatCannotRunOnFewIsNotGivenFew) {
  const JobId wide = Add("wide");
  const JobId linear = Add("linear");
  const std::map<JobId, int> gpus = Decide(0);
  EXPECT_EQ(gpus.at(wide), 4);
  EXPECT_EQ(gpus.at(linear), 4);
}

TEST_F(PolluxTest, AJobIsPutOnAtMostTwiceTheGpusThatItHasTried) {
  const JobId job = Add("linear");
  Report(job, ReportOf(1, 1e6));
  EXPECT_EQ(Decide(0), (std::map<JobId, int>{{job, 2}}));
  Report(job, ReportOf(2, 1e6));
  EXPECT_EQ(Decide(600), (std::map<JobId, int>{{job, 4}}));
  Report(job, ReportOf(4, 1e6));
  EXPECT_EQ(Decide(1200), (std::map<JobId, int>{{job, 8}}));
}

TEST_F(PolluxTest, NoisyGradientsAreWorthMoreGpus) {
  Use("", 1, 8);
  const JobId quiet = Add("linear");
  const JobId noisy = Add("linear");
  profile::GoodputReport report = ReportOf(8, 0.01);
  report.model.times.alpha_compute = 0.2;  // for small parts it pays little to be many
  Report(quiet, report);
  report.model.noise.variance = 1e6;
  Report(noisy, report);
  const std::map<JobId, int> gpus = Decide(0);
  EXPECT_GT(gpus.at(noisy), gpus.at(quiet));
}

TEST_F(PolluxTest, AJobThatHasJustBeenMovedOftenIsLeftAlone) {
  const JobId job = Add("linear");
  Report(job, ReportOf(1, 1e6));
  EXPECT_EQ(Decide(0).at(job), 2);
  Report(job, ReportOf(2, 1e6));
  EXPECT_EQ(Decide(60).at(job), 4);
  // 90 s old and moved once: it would count half as much.
  Report(job, ReportOf(3, 1e6));
  EXPECT_EQ(Decide(121).at(job), 4);
  EXPECT_EQ(Decide(3000).at(job), 6);
}

TEST_F(PolluxTest, GoesOnAfterARestartAsItWouldHave) {
  for (int i = 0; i < 5; ++i) {
    Report(Add("linear"), ReportOf(4, std::pow(10.0, i)));
  }
  (void)Decide(0);
  (void)Decide(60);
  const std::unique_ptr<Memory> copy = CopyOf(*memory_, *policy_);
  const std::map<JobId, int> here = Decide(120);
  memory_ = CopyOf(*copy, *policy_);
  EXPECT_EQ(Decide(120), here);
}

TEST_F(PolluxTest, AnotherSeedMayFindAnotherAllocationOfTheSameWorth) {
  Use(":seed=2", 2, 4);
  const JobId job = Add("linear");
  EXPECT_EQ(Decide(0).at(job), 8);
}

TEST_F(PolluxTest, NodesThatAreDownHaveNoGpus) {
  const JobId job = Add("linear");
  const std::vector<bool> up{false, true};
  const Proposal proposal = policy_->Decide({.cluster = &cluster_,
                                             .gpus_up = 4,
                                             .nodes_up = &up,
                                             .jobs = &jobs_,
                                             .rates = &profiles_,
                                             .costs = &costs_},
                                            memory_.get());
  ASSERT_EQ(proposal.demands.size(), 1U);
  EXPECT_EQ(proposal.demands[0].job, job);
  ASSERT_EQ(proposal.demands[0].slices.size(), 1U);
  EXPECT_EQ(proposal.demands[0].slices[0].node, NodeAt(1));
}

// The search is bounded by counts: here a matrix of the largest size makes few generations.
TEST_F(PolluxTest, ManyJobsOnManyNodesTakeNoMoreWorkThanTheBound) {
  Use("", 512, 8);
  for (int i = 0; i < 3000; ++i) {
    (void)Add("poor");
  }
  EXPECT_GT(Decide(0).size(), 100U);
}

TEST(MostGpusTest, IsBoundedByTheReport) {
  profile::GoodputReport report = ReportOf(16, 1);
  EXPECT_EQ(MostGpusOf(report), 32);
  report.tried_gpus = 100;
  EXPECT_EQ(MostGpusOf(report), 64);
  report.model.limits.most = 256;  // 16 samples for each GPU at least
  EXPECT_EQ(MostGpusOf(report), 16);
  report.most_gpus = 3;
  EXPECT_EQ(MostGpusOf(report), 3);
}

TEST(GoodputCacheTest, SpeedupsCountFromTheFairShareAndKeepToTheRange) {
  GoodputCache cache;
  const profile::GoodputReport report = ReportOf(4, 100);
  const SearchJob job = cache.ByGoodput(JobId{}, report, {}, {.gpus = 2, .nodes = 1});
  EXPECT_EQ(job.most_gpus, 8);
  EXPECT_DOUBLE_EQ(job.on_one_node[1], 1);
  EXPECT_GT(job.on_one_node[3], job.on_several[3]);
  EXPECT_TRUE(job.usable.empty());
  const SearchJob ranged =
      cache.ByGoodput(JobId{}, report, {.least = 3, .most = 6}, {.gpus = 2, .nodes = 1});
  EXPECT_EQ(ranged.most_gpus, 6);
  EXPECT_EQ(ranged.usable, (std::vector<int>{0, 0, 3, 4, 5, 6}));
}

}  // namespace
}  // namespace trainyard::policies
