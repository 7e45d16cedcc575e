// SPDX-License-Identifier: Apache-2.0
#include "originals/chronus_published.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/catalog_lookup.h"
#include "originals/originals.h"
#include "support/leased_jobs.h"

namespace trainyard::originals {
namespace {

Result<Components> TryChronus(const std::string& options) {
  return base::MakeFrom(Originals(), ComponentKind::kPolicy,
                        ParseNamedOptions("chronus-published:" + options).value());
}

TEST(PublishedChronusOptionsTest, AreChecked) {
  for (const std::string options : {"slot=0.2", "lease=0", "unit=0"}) {
    EXPECT_FALSE(TryChronus(options).ok()) << options;
  }
  EXPECT_TRUE(TryChronus("lease=20,unit=60").ok());
}

class PublishedChronusTest : public ChronusTest {
 protected:
  void SetUp() override {
    reserve_ = 0;
    UsePublished("elasticflow");
  }
  void UsePublished(const std::string& variant) {
    Result<Components> made = TryChronus("lease=20,unit=1,slot=10,variant=" + variant);
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
}  // namespace trainyard::originals
