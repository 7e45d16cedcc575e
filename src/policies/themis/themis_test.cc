// SPDX-License-Identifier: Apache-2.0
// Themis on hand-made jobs: the order of an auction, what a lease keeps, and that nobody starves.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/themis_jobs.h"

namespace trainyard::policies {
namespace {

// ---------------------------------------------------------------------------------------- options

TEST_F(ThemisTest, BadOptionsAreRefused) {
  EXPECT_EQ(PolicyError("themis:lease=-1"),
            "policy 'themis': option 'lease' is '-1'; expected seconds >= 0, or a time "
            "such as 90s, 15m or 2h");
  EXPECT_EQ(PolicyError("themis:lease=1e10"), "policy 'themis': lease must be at most 1e9 seconds");
}

TEST_F(ThemisTest, ItAsksForTheWorkLeftAndLeavesGpuCountsAlone) {
  Use("");
  EXPECT_TRUE(policy_->traits().needs.work_left);
  EXPECT_FALSE(policy_->traits().may.resize);
}

// ------------------------------------------------------------------------------- order of service

TEST_F(ThemisTest, WhereThereIsRoomAllRunInOrderOfArrival) {
  Use("");
  CheckThatAllRunInOrderOfArrival();
}

TEST_F(ThemisTest, NoJobsNoDemands) {
  Use("");
  EXPECT_EQ(Serve(0, 8), Ids());
  EXPECT_EQ(wake_, -1);
}

TEST_F(ThemisTest, EqualRanksKeepTheirFormerOrder) {
  Use(":lease=0");
  for (int i = 0; i < 3; ++i) {
    jobs_.Add(0, 1, 1, 1000);
  }
  EXPECT_EQ(Serve(0, 1), Ids({0}));
  EXPECT_EQ(Order(0), Ids({0, 1, 2}));
  Run(JobAt(0), 100);
  EXPECT_EQ(Serve(100, 1), Ids({1}));  // 1.1, 1.1, and 1.0 for the job that ran
  EXPECT_EQ(Order(100), Ids({1, 2, 0}));
  Run(JobAt(1), 100);
  EXPECT_EQ(Serve(200, 1), Ids({2}));  // 1.2, and 1.1 for both that ran
  EXPECT_EQ(Order(200), Ids({2, 1, 0}));
}

TEST_F(ThemisTest, ANewJobJoinsAtTheTail) {
  Use(":lease=0");
  jobs_.Add(0, 1, 1, 1000);
  jobs_.Add(0, 1, 1, 1000);
  (void)Serve(0, 2);
  jobs_.Add(0, 1, 1, 1000);
  EXPECT_EQ(Serve(0, 2), Ids({0, 1}));
  EXPECT_EQ(Order(0), Ids({0, 1, 2}));
}

TEST_F(ThemisTest, FairTimeInSecondsDoesNotDependOnTheUnitOfWork) {
  Use(":lease=0");
  jobs_.Add(0, 1, 10, 1000);  // both 100 s
  jobs_.Add(0, 1, 1, 100);
  (void)Serve(50, 1);
  EXPECT_EQ(Order(50), Ids({0, 1}));
}

TEST_F(ThemisTest, WorkCountsAtTheFairShareOfItsTime) {
  Use(":lease=0");
  jobs_.Add(0, 4, 1, 1000);
  (void)Serve(0, 4);  // alone: fair share 1
  Run(JobAt(0), 500);
  jobs_.Add(500, 4, 1, 400);
  // Now 2 of 4 GPUs each. Job 0: (500 + 500) / (500 + 500 / 0.5) = 0.667; job 1: 400 / 800 = 0.5.
  // Had the first half counted at the present share, too, both would have 0.5.
  EXPECT_EQ(Serve(500, 4), Ids({0}));
  Run(JobAt(0), 100);
  // Job 0 stays, job 1 has (100 + 400) / 800 = 0.625; 40 s later 0.675.
  EXPECT_EQ(Serve(600, 4), Ids({0}));
  Run(JobAt(0), 40);
  EXPECT_EQ(Serve(640, 4), Ids({1}));
}

TEST_F(ThemisTest, WorkThatAFailureUndoesIsTakenOffAgain) {
  Use(":lease=0");
  jobs_.Add(0, 1, 1, 1000);
  jobs_.Add(0, 1, 1, 1000);
  (void)Serve(0, 1);
  Run(JobAt(0), 500);
  (void)Serve(500, 1);
  EXPECT_EQ(Order(500), Ids({1, 0}));
  Run(JobAt(0), -500);
  (void)Serve(500, 1);
  EXPECT_EQ(Order(500), Ids({1, 0}));  // as if it had never run: ranks are equal
  Run(JobAt(1), 1);
  (void)Serve(501, 1);
  EXPECT_EQ(Order(501), Ids({0, 1}));
}

TEST_F(ThemisTest, AGangLargerThanWhatIsUpWaitsAndIsNoBurden) {
  Use("");
  jobs_.Add(0, 8, 1, 1000);
  jobs_.Add(0, 2, 1, 1000);
  EXPECT_EQ(Serve(0, 4), Ids({1}));
  EXPECT_EQ(Serve(1, 4), Ids({1}));
  EXPECT_EQ(wake_, -1);  // who can run does so: there is nothing to decide
  jobs_.Hold({});
  EXPECT_EQ(Serve(10, 0), Ids());
  EXPECT_EQ(Serve(20, 10), Ids({0, 1}));
}

// ----------------------------------------------------------------------------------------- leases

TEST_F(ThemisTest, ALeaseKeepsRunningJobsUntilItEnds) {
  Use(":lease=600");
  jobs_.Add(0, 1, 1, 10000);
  jobs_.Add(0, 1, 1, 100);
  EXPECT_EQ(Serve(0, 1), Ids({0}));
  EXPECT_EQ(wake_, 600);
  Run(JobAt(0), 300);
  jobs_.Add(300, 1, 1, 10);
  EXPECT_EQ(Serve(300, 1), Ids({0}));
  EXPECT_EQ(wake_, 600);
  Run(JobAt(0), 300);
  EXPECT_EQ(Serve(600, 1), Ids({2}));
  EXPECT_EQ(wake_, 1200);
  jobs_.Remove(JobAt(2));
  EXPECT_EQ(Serve(610, 1), Ids({1}));  // nothing runs: nothing is leased
  EXPECT_EQ(wake_, 1210);
}

TEST_F(ThemisTest, FreeGpusAreFilledInTheOrderOfTheLastAuction) {
  Use(":lease=600");
  jobs_.Add(0, 2, 1, 5000);
  jobs_.Add(0, 2, 1, 50);
  jobs_.Add(0, 4, 1, 5000);
  jobs_.Add(0, 1, 1, 5000);
  jobs_.Add(0, 1, 1, 5000);
  jobs_.Add(0, 1, 1, 5000);
  ASSERT_EQ(Serve(0, 4), Ids({3, 4, 5}));  // fair share of a GPU each: rho 1, then 0.5 and 0.25
  ASSERT_EQ(Order(0), Ids({3, 4, 5, 0, 1, 2}));
  jobs_.Remove(JobAt(4));
  EXPECT_EQ(Serve(100, 4), Ids({3, 5, 0}));  // 1 + 1, then 2 of the free 2
  jobs_.Remove(JobAt(3));
  jobs_.Add(100, 1, 1, 10);
  EXPECT_EQ(Serve(100, 4), Ids({5, 0, 6}));  // 2 and 4 do not fit into 1: the new job does
}

TEST_F(ThemisTest, WithoutALeaseEveryDecisionIsAnAuction) {
  Use(":lease=0");
  jobs_.Add(0, 1, 1, 1000);
  jobs_.Add(0, 1, 1, 1000);
  EXPECT_EQ(Serve(0, 1), Ids({0}));
  EXPECT_EQ(wake_, -1);
  Run(JobAt(0), 1);
  EXPECT_EQ(Serve(1, 1), Ids({1}));
  EXPECT_EQ(wake_, -1);
}

TEST_F(ThemisTest, AJobThatFindsNoPlaceIsTriedAtTheNextAuctionButNotForEver) {
  Use(":lease=600");
  jobs_.Add(0, 4, 1, 1000);
  EXPECT_EQ(Named(Decide(0, 4)), Ids({0}));  // the placement has no place: it does not run
  const Proposal again = Decide(600, 4);
  EXPECT_EQ(Named(again), Ids({0}));
  EXPECT_FALSE(again.wake_at);
}

TEST_F(ThemisTest, ACopyOfTheMemoryGoesItsOwnWay) {
  Use(":lease=600");
  jobs_.Add(0, 1, 1, 10000);
  jobs_.Add(0, 1, 1, 100);
  ASSERT_EQ(Serve(0, 1), Ids({0}));
  const std::unique_ptr<Memory> copy = CopyOf(*memory_, *policy_);
  Run(JobAt(0), 600);
  const Ids after = Serve(600, 1);
  ASSERT_EQ(after, Ids({1}));
  jobs_.Hold({{.job = JobAt(0), .gpus = 1}});
  EXPECT_EQ(Named(policy_->Decide(At(600, 1), copy.get())), after);
  // The copy's lease now ends at 1200, too; a copy of then that is asked later moves on alone.
  const std::unique_ptr<Memory> later = CopyOf(*memory_, *policy_);
  jobs_.Hold({{.job = JobAt(1), .gpus = 1}});
  Run(JobAt(1), 50);
  EXPECT_EQ(Seconds(*policy_->Decide(At(1200, 1), later.get()).wake_at), 1800);
  EXPECT_EQ(Seconds(*Decide(650, 1).wake_at), 1200);
}

// ------------------------------------------------------------------------------------- no starving

TEST_F(ThemisRunTest, NoRhoIsMuchLargerThanTheOverload) {
  CheckThatNoRhoIsMuchLargerThanTheOverload({{":lease=600", 600}, {":lease=3600", 3600}});
}

// Single-GPU jobs without end keep three quarters of the cluster busy: by count alone there would
// never be room for the gang.
TEST_F(ThemisRunTest, AStreamOfSmallJobsDoesNotStarveAGangOfTheWholeCluster) {
  std::vector<ThemisArrival> arrivals;
  for (int i = 0; i < 2000; ++i) {
    if (i == 20) {
      arrivals.push_back({.submit = 300.0 * i, .gpus = 4, .rate = 1, .work = 7200});
    }
    arrivals.push_back({.submit = 300.0 * i, .gpus = 1, .rate = 1, .work = 900});
  }
  EXPECT_LT(RunAll(":lease=600", 600, 4, arrivals)[20].rho, 2);
}

}  // namespace
}  // namespace trainyard::policies
