// SPDX-License-Identifier: Apache-2.0
#include "policies/rest_of_job.h"

#include <gtest/gtest.h>

namespace trainyard::policies {
namespace {

class FixedCosts final : public RestartCosts {
 public:
  [[nodiscard]] Duration Of(const JobSpec& /*job*/, Change change, int /*gpus*/) const override {
    return change == Change::kResize    ? FromSeconds(30)
           : change == Change::kMigrate ? FromSeconds(20)
                                        : FromSeconds(1000);
  }
};

// Twice as fast for 30 s: worth it from 60 s on.
TEST(RestOfJobTest, AChangeIsWorthWhatItBringsTheEndNearer) {
  const RestOfJob long_left{.work = 100, .stay = 100, .cost = 30};
  EXPECT_DOUBLE_EQ(long_left.Worth(2, 1), 100.0 / (30 + 50));
  const RestOfJob at_the_limit{.work = 60, .stay = 60, .cost = 30};
  EXPECT_DOUBLE_EQ(at_the_limit.Worth(2, 1), 1);
  const RestOfJob nearly_done{.work = 59, .stay = 59, .cost = 30};
  EXPECT_LT(nearly_done.Worth(2, 1), 1);
  EXPECT_GT(nearly_done.Worth(3, 1), 0.8);
  // Elsewhere, and no faster: only the cost is left of it.
  EXPECT_DOUBLE_EQ(long_left.Worth(0.5, 0.5), 0.5 * 100 / 130);
}

// A job that has not paid for its last change pays for the next one instead.
TEST(RestOfJobTest, TheCostThatIsNotPaidYetCountsForStaying) {
  const RestOfJob rest{.work = 50, .stay = 80, .cost = 30};
  EXPECT_DOUBLE_EQ(rest.Worth(1, 1), 1);
  EXPECT_GT(rest.Worth(2, 1), 1);
}

TEST(RestOfJobTest, IsOfRunningJobsOfWhichWhatIsLeftIsKnown) {
  const FixedCosts costs;
  JobSpec spec;
  const Grant grant{.gpus = 2};
  JobView job{.spec = &spec, .grant = &grant, .debt = FromSeconds(5), .last_rate = 4};
  EXPECT_FALSE(RestOf(job, costs));
  job.work_left = 200;
  const std::optional<RestOfJob> rest = RestOf(job, costs);
  ASSERT_TRUE(rest);
  EXPECT_DOUBLE_EQ(rest->work, 50);
  EXPECT_DOUBLE_EQ(rest->stay, 55);
  EXPECT_DOUBLE_EQ(rest->cost, 30);
  job.last_rate = 0;
  EXPECT_FALSE(RestOf(job, costs));
  job.last_rate = 4;
  job.grant = nullptr;
  EXPECT_FALSE(RestOf(job, costs));
}

}  // namespace
}  // namespace trainyard::policies
