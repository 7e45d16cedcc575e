// SPDX-License-Identifier: Apache-2.0
// Chronus on hand-made jobs: promises, leases, and what is left of the GPUs.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "policy/hand_made_jobs.h"
#include "policy/policies.h"

namespace trainyard {
namespace {

constexpr double kLease = 100;

class NoCosts final : public RestartCosts {
 public:
  [[nodiscard]] Duration Of(const JobSpec& /*job*/, Change /*change*/,
                            int /*gpus*/) const override {
    return cost;
  }
  Duration cost{0};
};

using Ids = std::vector<std::size_t>;

class ChronusTest : public testing::Test {
 protected:
  void SetUp() override { Use(""); }

  void Use(const std::string& options) {
    Result<Components> made = TryPolicy("chronus:lease=100,margin=1" + options);
    ASSERT_TRUE(made.ok()) << made.error().message;
    policy_ = std::move(made.value().policy);
    memory_ = policy_->NewMemory();
  }

  // A job without deadlines is a best-effort job. Deadlines are worth 10, 9, ... A second is left
  // of the duration, as of each lease a bit is kept in reserve.
  JobId Add(int gpus, double duration, const std::vector<double>& deadlines = {}) {
    duration -= reserve_;
    JobSpec spec{.name = "job", .gpus = gpus, .submit = AtSeconds(now_)};
    spec.duration = FromSeconds(duration);
    if (!deadlines.empty()) {
      const auto traits = std::make_shared<JobTraits>();
      for (const double deadline : deadlines) {
        const double value = 10.0 - static_cast<double>(traits->deadlines.size());
        traits->deadlines.push_back({AtSeconds(deadline), value});
      }
      spec.deadline = AtSeconds(deadlines.front());
      spec.traits = traits;
    }
    JobView& job = jobs_.Add(std::move(spec));
    job.time_left = FromSeconds(duration);
    left_.push_back(duration);
    return job.id;
  }

  // Runs the jobs that hold GPUs until then, and decides; who is done leaves before.
  Ids At(double now) {
    for (const JobId id : Ids2Jobs(running_)) {
      double& left = left_[Index(id)];
      left -= now - now_;
      jobs_.view(id).time_left = FromSeconds(std::max(0.0, left));
      if (left <= 0) {
        jobs_.Remove(id);
        ended_.push_back(Index(id));
      }
    }
    now_ = now;
    proposal_ = policy_->Decide(
        {.now = AtSeconds(now), .gpus_up = gpus_up_, .jobs = &jobs_, .costs = &costs_},
        memory_.get());
    jobs_.Hold(proposal_.demands);
    running_.clear();
    int used = 0;
    for (const Demand& demand : proposal_.demands) {
      running_.push_back(Index(demand.job));
      used += demand.gpus;
    }
    EXPECT_LE(used, gpus_up_);
    return running_;
  }

  static std::vector<JobId> Ids2Jobs(const Ids& ids) {
    std::vector<JobId> jobs;
    for (const std::size_t id : ids) {
      jobs.push_back(JobAt(id));
    }
    return jobs;
  }

  std::unique_ptr<Policy> policy_;
  std::unique_ptr<Memory> memory_;
  LiveJobs jobs_;
  NoCosts costs_;
  std::vector<double> left_;
  Ids running_;
  Ids ended_;
  Proposal proposal_;
  double now_ = 0;
  int gpus_up_ = 4;
  double reserve_ = 1;
};

TEST_F(ChronusTest, AJobIsServedInItsLeasesAlthoughAShorterOneWaits) {
  Use(",objective=minimize");
  Add(4, 200, {300});          // needs the two leases from 100 on
  EXPECT_EQ(At(0), (Ids{0}));  // idle GPUs: runs before its leases begin
  Add(4, 20);
  EXPECT_EQ(At(50), (Ids{0}));   // who runs goes on until the next lease
  EXPECT_EQ(At(100), (Ids{1}));  // 100 s are left, for which the lease from 200 on suffices
  EXPECT_EQ(At(120), (Ids{0}));
  EXPECT_EQ(At(200), (Ids{0}));
}

TEST_F(ChronusTest, ALeaseIsFilledUnlessJobsWaitThatAreNotAccepted) {
  Add(4, 200, {1000});
  EXPECT_EQ(At(0), (Ids{0}));
  Add(4, 20);
  EXPECT_EQ(At(100), (Ids{0}));  // although it has time
}

TEST_F(ChronusTest, ALeaseIsKeptUntilItsEnd) {
  Add(4, 200, {300});
  Add(4, 1000);
  At(0);
  Add(2, 10);
  EXPECT_EQ(At(100), (Ids{0}));
  Add(4, 5);
  EXPECT_EQ(At(150), (Ids{0}));
}

TEST_F(ChronusTest, WhatDoesNotFitBesidePromisesIsNotAccepted) {
  Add(4, 200, {300});
  At(0);
  Add(4, 100, {300});  // there is no lease left before 300
  At(10);
  At(100);
  EXPECT_EQ(running_, (Ids{1}));  // shorter, and the first one has run for 100 s by now
  EXPECT_EQ(At(200), (Ids{0}));   // the promise is kept
}

TEST_F(ChronusTest, LooserDeadlinesAreTriedAtAdmission) {
  Add(4, 100);
  Add(4, 200, {300});
  EXPECT_EQ(At(0), (Ids{0}));
  Add(4, 100, {300, 400});  // the leases before 300 are promised
  At(10);
  EXPECT_EQ(At(100), (Ids{1}));
  EXPECT_EQ(At(200), (Ids{1}));
  Add(4, 10);
  EXPECT_EQ(At(300), (Ids{2}));  // by its lease: the other one is shorter
}

TEST_F(ChronusTest, HopelessJobsComeLast) {
  Add(4, 1000);
  Add(4, 200, {150});
  EXPECT_EQ(At(0), (Ids{0}));
}

TEST_F(ChronusTest, SpotJobsRunOnAcrossLeases) {
  Add(2, 500);
  EXPECT_EQ(At(0), (Ids{0}));
  EXPECT_EQ(At(100), (Ids{0}));
  EXPECT_FALSE(proposal_.demands.front().restart);
  EXPECT_FALSE(proposal_.wake_at.has_value());  // nobody waits, nothing is promised
}

TEST_F(ChronusTest, WakesForTheNextLeaseWherePromisesStand) {
  Add(4, 200, {1000});
  At(30);
  EXPECT_EQ(proposal_.wake_at, AtSeconds(kLease));
}

TEST_F(ChronusTest, RestartCostsAreReserved) {
  costs_.cost = FromSeconds(50);
  Add(4, 100, {300});  // two leases of 50 s each, besides the restarts
  Add(4, 100, {300});  // no room for two more
  At(0);
  Add(4, 100, {500});
  At(1);
  EXPECT_EQ(At(100), (Ids{0}));
  costs_.cost = FromSeconds(100);  // as long as a lease: nothing can be promised
  Add(4, 1, {5000});
  At(101);
  EXPECT_EQ(running_, (Ids{0}));
}

TEST_F(ChronusTest, APromiseThatCannotBeKeptDoesNotStopTheOthers) {
  gpus_up_ = 8;
  Add(8, 300, {400});
  Add(4, 100, {900});
  At(0);
  gpus_up_ = 4;  // a node fails
  running_ = {};
  EXPECT_EQ(At(100), (Ids{1}));
  At(200);
  EXPECT_EQ(ended_, (Ids{1}));
  gpus_up_ = 8;
  EXPECT_EQ(At(300), (Ids{0}));  // runs, without a promise
}

TEST_F(ChronusTest, WithoutASolverPromisesAreKeptToo) {
  Use(",solver=never");
  Add(4, 200, {300});
  At(0);
  Add(4, 100, {400});
  At(10);
  for (const double now : {100.0, 200.0, 300.0, 400.0}) {
    At(now);
  }
  EXPECT_EQ(ended_.size(), 2U);
}

TEST_F(ChronusTest, AResizedJobIsJudgedAnew) {
  const JobId job = Add(2, 200, {300});
  At(0);
  JobSpec spec = *jobs_.view(job).spec;
  spec.gpus = 8;  // more than there are
  jobs_.view(job).spec = &spec;
  const std::vector<JobId> resized{job};
  const Proposal proposal = policy_->Decide(
      {.now = AtSeconds(50), .gpus_up = 4, .jobs = &jobs_, .resized = resized, .costs = &costs_},
      memory_.get());
  EXPECT_TRUE(proposal.demands.empty());
}

TEST(ChronusOptionsTest, AreChecked) {
  EXPECT_EQ(PolicyError("chronus:lease=0"),
            "policy 'chronus': a lease of 0.000000 units of 1.000000 s; expected at least 1 unit "
            "of more than 0 s");
  EXPECT_EQ(PolicyError("chronus:margin=0.5"),
            "policy 'chronus': margin is less than 1; expected at least 1");
  EXPECT_EQ(PolicyError("chronus:plan=original,slot=0.2"),
            "policy 'chronus': slot is less than a unit; expected at least 1");
  EXPECT_EQ(PolicyError("chronus:plan=original,lease=20,unit=60"), "no error");
}

// --------------------------------------------------------------------------------- as published

class PublishedChronusTest : public ChronusTest {
 protected:
  void SetUp() override {
    reserve_ = 0;
    UsePublished("elasticflow");
  }
  void UsePublished(const std::string& plan) {
    Result<Components> made = TryPolicy("chronus:lease=20,slot=10,plan=" + plan);
    ASSERT_TRUE(made.ok()) << made.error().message;
    policy_ = std::move(made.value().policy);
    memory_ = policy_->NewMemory();
  }
  [[nodiscard]] const Demand* Of(std::size_t job) const {
    const auto found = std::find_if(proposal_.demands.begin(), proposal_.demands.end(),
                                    [job](const Demand& d) { return Index(d.job) == job; });
    return found == proposal_.demands.end() ? nullptr : &*found;
  }
};

TEST_F(PublishedChronusTest, AcceptedJobsWaitForTheirLeaseAndAreCreditedWithTheLastSlot) {
  Add(4, 30, {200});
  EXPECT_EQ(At(0), (Ids{}));  // admitted after the lease was planned
  EXPECT_EQ(At(10), (Ids{}));
  EXPECT_EQ(At(20), (Ids{0}));
  ASSERT_NE(Of(0), nullptr);
  EXPECT_EQ(Of(0)->credit, FromSeconds(10));
  EXPECT_FALSE(Of(0)->restart);
}

TEST_F(PublishedChronusTest, ArrivalsWaitForTheSlot) {
  Add(1, 30);
  EXPECT_EQ(At(3), (Ids{}));
  EXPECT_EQ(proposal_.wake_at, AtSeconds(4));
  EXPECT_EQ(At(10), (Ids{0}));
  EXPECT_EQ(Of(0)->credit, Duration{0});
}

TEST_F(PublishedChronusTest, OthersRestartAtEveryLease) {
  Add(1, 300);
  At(0);
  At(10);
  EXPECT_FALSE(Of(0)->restart);
  At(20);
  EXPECT_TRUE(Of(0)->restart);
  At(30);
  EXPECT_FALSE(Of(0)->restart);
}

TEST_F(PublishedChronusTest, OnlyTheTightestDeadlineCounts) {
  Add(4, 35, {75});       // needs leases 1 and 2 of 1 to 2
  Add(4, 10, {60, 400});  // no lease before 60; the looser deadline is not looked at
  At(0);
  EXPECT_EQ(running_, (Ids{1}));  // not accepted, so it runs at once
}

TEST_F(PublishedChronusTest, BackfillIsFreeAndUpsideDown) {
  UsePublished("original");
  gpus_up_ = 2;
  Add(1, 100);
  Add(1, 100);
  Add(1, 3);
  At(0);
  EXPECT_EQ(running_, (Ids{0, 2}));
  At(4);  // the short one has gone
  EXPECT_EQ(running_, (Ids{0}));
  costs_.cost = FromSeconds(0.5);
  EXPECT_EQ(At(5), (Ids{0, 1}));
  EXPECT_EQ(Of(1)->credit, FromSeconds(5.5));  // since the last slot, and the resume
}

TEST_F(PublishedChronusTest, JobsThatEndWithinTheLeaseAreForcedIn) {
  UsePublished("original");
  Add(4, 100);
  At(0);
  Add(4, 8, {15});  // no whole lease before its deadline: not accepted
  EXPECT_EQ(At(10), (Ids{1}));
}

}  // namespace
}  // namespace trainyard
