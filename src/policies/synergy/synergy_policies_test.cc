// SPDX-License-Identifier: Apache-2.0
// ftf, drf, tetris and synergy-opt on hand-made jobs. One node: 4 GPUs, 8 CPUs, 40 GiB.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/hand_made_jobs.h"
#include "support/sensitive_jobs.h"

namespace trainyard::policies {
namespace {

using JobIds = std::vector<std::size_t>;

class SynergyPolicyTest : public testing::Test {
 protected:
  SynergyPolicyTest() {
    cluster_.nodes.push_back(
        {.gpus = 4, .capacity = {.milli_cpus = 8000, .memory_mib = 40 * 1024}});
  }

  void Use(const std::string& name) {
    Result<Components> made = TryPolicy(name);
    ASSERT_TRUE(made.ok()) << made.error().message;
    policy_ = std::move(made.value().policy);
    ASSERT_NE(policy_, nullptr);
    memory_ = policy_->NewMemory();
  }
  JobView& Add(const char* cpus, int gpus, double seconds_left = 100, std::string user = "") {
    JobView& job = jobs_.Add(
        {.name = "job", .user = std::move(user), .model = cpus, .gpus = gpus, .iterations = 100});
    job.time_left = FromSeconds(seconds_left);
    job.work_left = seconds_left * 2;
    job.last_rate = 2;
    return job;
  }
  Proposal Decide() {
    return policy_->Decide(
        {.now = AtSeconds(0), .cluster = &cluster_, .gpus_up = 4, .jobs = &jobs_, .rates = &rates_},
        memory_.get());
  }
  JobIds Order() {
    JobIds order;
    for (const Demand& demand : Decide().demands) {
      order.push_back(Index(demand.job));
    }
    return order;
  }

  Cluster cluster_;
  HungryModels rates_;
  ChangingJobs jobs_;
  std::unique_ptr<Policy> policy_;
  std::unique_ptr<Memory> memory_;
};

// ------------------------------------------------------------------------------------------- ftf

class FtfTest : public testing::Test {
 protected:
  JobView& Add(double duration, double waited, double run, double left) {
    JobView& job = jobs_.Add({.gpus = 1, .duration = FromSeconds(duration)});
    job.waited = FromSeconds(waited);
    job.run_time = FromSeconds(run);
    job.time_left = FromSeconds(left);
    return job;
  }
  HandMadeJobs jobs_;
};

TEST_F(FtfTest, TheWorstTreatedComesFirst) {
  const auto ftf = OrderingNamed("ftf");
  const Key well = ftf->StandingOf(Add(1000, 0, 500, 500), {}, nullptr).key;  // rho 1
  const Key badly = ftf->StandingOf(Add(100, 200, 50, 50), {}, nullptr).key;  // rho 3
  EXPECT_LT(badly, well);
  EXPECT_DOUBLE_EQ(badly[0], -3);
  EXPECT_EQ(ftf->traits().moves, kAlways);
  EXPECT_TRUE(ftf->traits().needs.work_left);
}

TEST_F(FtfTest, OrTheBestTreated) {
  const auto ftf = OrderingNamed("ftf:serve=best");
  EXPECT_LT(ftf->StandingOf(Add(1000, 0, 500, 500), {}, nullptr).key,
            ftf->StandingOf(Add(100, 200, 50, 50), {}, nullptr).key);
}

TEST_F(FtfTest, RemainingTimeIsAtTheSpeedOfTheGrantAtHand) {
  JobView& job = Add(100, 0, 0, 40);
  job.work_left = 100;
  job.last_rate = 1;
  const auto last = OrderingNamed("ftf:speed=last");
  EXPECT_DOUBLE_EQ(last->StandingOf(job, {}, nullptr).key[0], -1);  // never ran: its full rate
  job.started = true;
  EXPECT_DOUBLE_EQ(last->StandingOf(job, {}, nullptr).key[0], -0.4);  // holds nothing: full speed
  jobs_.Hold(job, 1);
  EXPECT_DOUBLE_EQ(last->StandingOf(job, {}, nullptr).key[0], -1);
  EXPECT_DOUBLE_EQ(OrderingNamed("ftf")->StandingOf(job, {}, nullptr).key[0], -0.4);
}

// ---------------------------------------------------------------------------------- drf and tetris

class SharesTest : public testing::Test {
 protected:
  JobView& Add(double gpus, double cpus, double memory, std::string user = "") {
    JobView& job = jobs_.Add({.user = std::move(user), .gpus = static_cast<int>(4 * gpus)});
    job.shares = {.gpus = gpus, .cpus = cpus, .memory = memory};
    job.time_left = FromSeconds(100);
    return job;
  }
  // The jobs by key, then arrival.
  JobIds Order(const std::string& name) {
    const auto ordering = OrderingNamed(name);
    const std::unique_ptr<Memory> memory = ordering->NewMemory();
    ordering->BeginDecision({.gpus_up = 4, .jobs = &jobs_}, memory.get());
    JobIds order;
    for (const JobId job : jobs_.live()) {
      order.push_back(Index(job));
    }
    const auto key = [&](std::size_t job) {
      return ordering->StandingOf(jobs_.at(JobAt(job)), {}, memory.get()).key;
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    return order;
  }
  HandMadeJobs jobs_;
};

TEST_F(SharesTest, DrfServesTheUserWithTheSmallestDominantShare) {
  Add(.25, .5, 0, "cpu");  // half of the cluster
  Add(.25, .5, 0, "cpu");
  Add(.25, .125, 0, "gpu");  // a quarter of the GPUs
  Add(.25, .125, 0, "gpu");
  Add(.25, .125, 0, "gpu");
  EXPECT_EQ(Order("drf"), (JobIds{0, 2, 3, 1, 4}));  // shares before: 0, 0, 1/4, 1/2, 1/2
}

TEST_F(SharesTest, ForDrfAUserDoesNotHaveWhatDoesNotFit) {
  Add(.75, 0, 0, "a");
  Add(.5, 0, 0, "b");  // does not fit beside it, so that b still has nothing
  Add(.25, 0, 0, "b");
  Add(.25, 0, 0, "a");
  EXPECT_EQ(Order("drf"), (JobIds{0, 1, 2, 3}));
}

TEST_F(SharesTest, JobsWithoutAUserAreUsersOfTheirOwn) {
  Add(.25, 0, 0);
  Add(.25, 0, 0, "a");
  Add(.25, 0, 0, "a");
  Add(.25, 0, 0);
  EXPECT_EQ(Order("drf"), (JobIds{0, 1, 3, 2}));
}

TEST_F(SharesTest, DrfByJobTakesTheSmallestDemandFirst) {
  Add(.25, .75, 0);
  Add(.5, .125, 0);
  Add(.25, .125, 0);
  Add(.25, .25, 0);
  EXPECT_EQ(Order("drf:by=job"), (JobIds{2, 3, 1, 0}));
}

TEST_F(SharesTest, TetrisTakesTheSmallestVolumeFirst) {
  Add(.25, .5, .25);
  Add(.25, .125, .25).time_left = FromSeconds(150);
  Add(1, .5, 1).time_left = FromSeconds(30);
  EXPECT_EQ(Order("tetris"), (JobIds{2, 1, 0}));
}

TEST_F(SharesTest, TetrisCountsWhatAnExchangeWouldCost) {
  JobView& running = Add(.25, 0, 0);
  jobs_.Hold(running, 1);
  JobView& waiting = Add(.25, 0, 0);
  const auto tetris = OrderingNamed("tetris");
  EXPECT_EQ(tetris->StandingOf(running, {}, nullptr).key,
            tetris->StandingOf(waiting, {}, nullptr).key);
  running.start_cost = FromSeconds(5);
  EXPECT_LT(tetris->StandingOf(running, {}, nullptr).key,
            tetris->StandingOf(waiting, {}, nullptr).key);
}

// ----------------------------------------------------------------------------------- synergy-opt

TEST_F(SynergyPolicyTest, OptDividesTheWholeCluster) {
  Use("synergy-opt:order=fifo,cpus=1/2/4/5/6,memory_gb=10");
  Add("1", 1, 300);
  Add("5", 1, 200);
  Add("2", 2, 100);
  Add("1", 1, 50);
  const Proposal proposal = Decide();
  ASSERT_EQ(proposal.demands.size(), 4U);
  EXPECT_EQ(proposal.demands[0].preferred.milli_cpus, 1000);
  // 1 is taken, 4 stay with the gang of 2: of the 5 that there would be, it gets 2 or 3.
  EXPECT_EQ(proposal.demands[2].preferred.milli_cpus, 4000);
  EXPECT_LE(proposal.demands[1].preferred.milli_cpus, 3000);
  EXPECT_EQ(proposal.demands[3].preferred, Resources{});  // does not fit by count
}

TEST_F(SynergyPolicyTest, OptBySrtfPicksTheShortest) {
  Use("synergy-opt:order=srtf,memory_gb=10");
  Add("1", 4, 300);
  Add("1", 3, 200);
  Add("1", 1, 100);
  EXPECT_EQ(Order(), (JobIds{2, 1, 0}));
}

}  // namespace
}  // namespace trainyard::policies
