// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "base/catalog_lookup.h"
#include "originals/originals.h"
#include "support/gandiva_jobs.h"
#include "support/sanitized.h"

namespace trainyard::originals {
namespace {

Result<Components> MadeWith(const std::string& options) {
  return base::MakeFrom(Originals(), ComponentKind::kPolicy,
                        ParseNamedOptions("gandiva-published" + options).value());
}

class PublishedGandivaTest : public GandivaTest {
 protected:
  [[nodiscard]] Result<Components> Make(const std::string& options) const override {
    return MadeWith(options);
  }
};

class PublishedGandivaRunTest : public GandivaRunTest {
 protected:
  [[nodiscard]] Result<Components> Make(const std::string& options) const override {
    return MadeWith(options);
  }
};

TEST(PublishedGandivaOptionsTest, BadOnesAreRefused) {
  EXPECT_EQ(MadeWith(":rotate=never").error().message,
            "policy 'gandiva-published': option 'rotate' is 'never'; expected one of quantum, "
            "multiples");
  EXPECT_EQ(MadeWith(":groups=none").error().message,
            "policy 'gandiva-published': option 'groups' is 'none'; expected one of balanced, "
            "published");
  EXPECT_EQ(MadeWith(":spare=-1").error().message,
            "policy 'gandiva-published': option 'spare' is '-1'; expected a number >= 0");
  EXPECT_EQ(MadeWith(":quantum=0").error().message,
            "policy 'gandiva-published': quantum must lie between 1 and 1e9 seconds");
}

TEST_F(PublishedGandivaTest, ASizeWithoutANodeWaits) {
  Use("", 1, 4);
  CheckThatASizeWithoutANodeWaits();
}

TEST_F(PublishedGandivaTest, JobsOfANodeThatIsLostGoOnElsewhere) {
  Use("", 2, 4);
  CheckThatJobsOfALostNodeGoOn();
}

TEST_F(PublishedGandivaTest, ASparePlaceStaysEmptyAsLongAsThereAreFreeNodes) {
  Use(":rotate=quantum,groups=balanced", 2, 4);
  Add(5, 1);
  EXPECT_EQ(Decide(0), "012. 34..");
  Add(3, 1);
  EXPECT_EQ(Decide(1), "0127 3456");
}

TEST_F(PublishedGandivaTest, TurnsMayBeTakenOnlyAtMultiples) {
  Use(":spare=0,groups=balanced", 1, 1);
  Add(2, 1);
  EXPECT_EQ(Decide(30), "0");
  EXPECT_EQ(wake_, -1);
  EXPECT_EQ(Decide(119), "0");
  EXPECT_EQ(Decide(180), "1");
  EXPECT_EQ(Decide(181), "1");
  EXPECT_EQ(Decide(240), "0");
}

// Two GPUs too many, so two sets of two GPUs are dissolved; then two too few, so two sets are
// added, and the jobs stay where they are.
TEST_F(PublishedGandivaTest, GroupsCountGpusAsSets) {
  Use("", 4, 2);
  Add(6, 1);
  EXPECT_EQ(Decide(0), ".. .. 24 35");
  EXPECT_EQ(told_, Ids({1, 0}));
  EXPECT_EQ(Decide(1), ".. .. 24 35");
  EXPECT_EQ(Decide(2), ".. .. 24 35");
  EXPECT_EQ(Decide(60), ".. .. 20 31");
}

TEST_F(PublishedGandivaTest, GrowthDealsTheJobsOutAnewWhereNodesRunOut) {
  Use("", 4, 2);
  Add(1, 2);
  Add(8, 1);
  // The first set is never the one that gets a job while all are full: it goes to the tail first.
  EXPECT_EQ(Decide(1), "00 14 25 3.");
  Remove(0);
  EXPECT_EQ(Decide(2), "71 54 26 38");
}

TEST_F(PublishedGandivaTest, RetryPassesOverTheOneBehindAJobThatWasPlaced) {
  Use("", 1, 4);
  Add(1, 1);
  Add(3, 2);
  EXPECT_EQ(Decide(0), "0...");
  Remove(0);
  EXPECT_EQ(Decide(10), "1133");
  EXPECT_EQ(told_, Ids());
  Remove(1);
  EXPECT_EQ(Decide(20), "..33") << "no node came free";
  Remove(3);
  EXPECT_EQ(Decide(30), "22..");
}

TEST_F(PublishedGandivaRunTest, GpusNeverOverlapAndAllJobsEnd) {
  for (int round = 0; round < Rounds(150) && !HasFailure(); ++round) {
    UseRandomCluster("", round % 2 == 0);
    ASSERT_TRUE(RunAll(60, false)) << round;
  }
}

}  // namespace
}  // namespace trainyard::originals
