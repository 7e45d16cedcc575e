// SPDX-License-Identifier: Apache-2.0
#include "policies/muri/interleave.h"
#include "base/catalog_lookup.h"

#include <gtest/gtest.h>

#include "support/staged_jobs.h"

namespace trainyard::policies {
namespace {

class InterleaveTest : public testing::Test {
 protected:
  // Jobs in order of their numbers.
  static std::vector<Demand> Group(StagedJobs& jobs, const Walk& walk,
                                   const std::string& text = "interleave") {
    const Snapshot snapshot = jobs.At(0);
    const std::vector<RankedJob> ranked = jobs.Ranked();
    const std::unique_ptr<Grouping> grouping =
        base::MakeFrom(Policies(), ComponentKind::kGrouping, ParseNamedOptions(text).value())
            .value()
            .grouping;
    return grouping->Group(snapshot, ranked, walk, grouping->NewMemory().get());
  }
};

TEST_F(InterleaveTest, ThoseThatFitTogetherShareAGang) {
  StagedJobs jobs({2});
  jobs.Add(2, kLoads, 100);
  jobs.Add(2, kComputes, 100);
  jobs.Add(2, kTalks, 100);
  const std::vector<Demand> demands = Group(jobs, {});
  ASSERT_EQ(demands.size(), 1U);
  EXPECT_EQ(demands[0].gpus, 2);
  EXPECT_EQ(demands[0].sharing, Sharing::kInterleaved);
  EXPECT_EQ(demands[0].partners.size(), 2U);
  EXPECT_FALSE(demands[0].may_split);
}

TEST_F(InterleaveTest, WithoutPreemptionARunningJobIsLeftAlone) {
  const Grant held{.gpus = 2, .slices = {{.node = NodeAt(0), .gpus = 0b11}}};
  StagedJobs jobs({2, 2});
  jobs.Add(2, kComputes, 100);
  jobs.Add(2, kLoads, 100).grant = &held;
  jobs.Add(2, kTalks, 100);
  const std::vector<Demand> demands = Group(jobs, {.preempt = false});
  ASSERT_EQ(demands.size(), 2U);
  EXPECT_EQ(demands[0].job, JobAt(1));
  EXPECT_TRUE(demands[0].partners.empty());
  EXPECT_EQ(demands[1].partners.size(), 1U);
}

TEST_F(InterleaveTest, AGroupThatRunsGoesOnWithoutThoseWhoHaveGone) {
  Grant held{.gpus = 2, .slices = {{.node = NodeAt(0), .gpus = 0b11}}};
  held.sharing = Sharing::kInterleaved;
  held.group = {JobAt(1), JobAt(7), JobAt(0)};
  StagedJobs jobs({2});
  jobs.Add(2, kComputes, 100).grant = &held;
  jobs.Add(2, kLoads, 100).grant = &held;
  const std::vector<Demand> demands = Group(jobs, {.preempt = false});
  ASSERT_EQ(demands.size(), 1U);
  EXPECT_EQ(demands[0].job, JobAt(1));
  EXPECT_EQ(demands[0].partners, (std::vector<JobId>{JobAt(0)}));
}

TEST_F(InterleaveTest, NobodyPassesOneWhoWaitsWhereTheOrderIsStrict) {
  const Grant held{.gpus = 1, .slices = {{.node = NodeAt(0), .gpus = 0b1}}};
  StagedJobs jobs({2});
  jobs.Add(1, kLoads, 100).grant = &held;
  jobs.Add(2, kTalks, 100);
  jobs.Add(1, kComputes, 100);
  EXPECT_EQ(Group(jobs, {.misfit = Misfit::kStop, .preempt = false}).size(), 1U);
  EXPECT_EQ(Group(jobs, {.misfit = Misfit::kSkip, .preempt = false}).size(), 2U);
}

TEST_F(InterleaveTest, JobsThatAcceptOtherGpuTypesAreNotGrouped) {
  StagedJobs jobs({2});
  jobs.Add(2, kLoads, 100);
  jobs.Add(2, kComputes, 100);
  JobTraits traits = *jobs.jobs().at(JobAt(1)).spec->traits;
  traits.gpu_types = {"A100"};
  jobs.AddWith(2, traits, 100);
  jobs.AddWith(2, traits, 100);
  const std::vector<Demand> demands = Group(jobs, {});
  ASSERT_EQ(demands.size(), 1U);
  EXPECT_EQ(demands[0].partners.size(), 1U);
}

TEST_F(InterleaveTest, RefusesGroupsThatAreTooLarge) {
  const auto made = base::MakeFrom(Policies(), ComponentKind::kGrouping,
                                   ParseNamedOptions("interleave:size=5").value());
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message, "grouping 'interleave': size is 5; expected 1, 2, 3 or 4");
  EXPECT_NE(base::MakeFrom(Policies(), ComponentKind::kGrouping, {.name = "interleav"})
                .error()
                .message.find("did you mean 'interleave'?"),
            std::string::npos);
}

}  // namespace
}  // namespace trainyard::policies
