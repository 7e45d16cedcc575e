// SPDX-License-Identifier: Apache-2.0
// Chronus on hand-made jobs: promises, leases, and what is left of the GPUs.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/leased_jobs.h"

namespace trainyard::policies {
namespace {

constexpr double kLease = 100;

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
}

}  // namespace
}  // namespace trainyard::policies
