// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/staged_jobs.h"

namespace trainyard::policies {
namespace {

class MuriTest : public testing::Test {
 protected:
  void Use(const std::string& text) {
    Result<Components> made = TryPolicy(text);
    ASSERT_TRUE(made.ok()) << made.error().message;
    policy_ = std::move(made.value().policy);
    memory_ = policy_->NewMemory();
  }
  std::vector<Demand> Decide(StagedJobs& jobs, double now = 0) {
    return policy_->Decide(jobs.At(now), memory_.get()).demands;
  }

  std::unique_ptr<Policy> policy_;
  std::unique_ptr<Memory> memory_;
};

TEST_F(MuriTest, TheLeastRemainingServiceComesFirst) {
  Use("muri-s:size=1");
  StagedJobs jobs({2});
  jobs.Add(1, kLoads, 100);
  jobs.Add(2, kLoads, 40);
  jobs.Add(1, kLoads, 70);
  const std::vector<Demand> demands = Decide(jobs);
  ASSERT_EQ(demands.size(), 2U);
  EXPECT_EQ(demands[0].job, JobAt(2));  // 70 before 2 x 40
  EXPECT_EQ(demands[1].job, JobAt(0));
}

TEST_F(MuriTest, TheLeastAttainedServiceComesFirstForMuriL) {
  Use("muri-l:size=1");
  StagedJobs jobs({1});
  jobs.Add(1, kLoads, 10).gpu_seconds = 30;
  jobs.Add(1, kLoads, 100).gpu_seconds = 20;
  const std::vector<Demand> demands = Decide(jobs);
  ASSERT_EQ(demands.size(), 1U);
  EXPECT_EQ(demands[0].job, JobAt(1));
}

TEST_F(MuriTest, OfEqualRanksTheLargerJobGoesFirstFromTheSecondDecisionOn) {
  Use("muri-l:size=1");
  StagedJobs jobs({2});
  jobs.Add(1, kLoads, 10);
  jobs.Add(2, kLoads, 10);
  EXPECT_EQ(Decide(jobs).front().job, JobAt(0));
  EXPECT_EQ(Decide(jobs).front().job, JobAt(1));
}

// Between the positions of the two there is a phase without anybody.
TEST_F(MuriTest, TwoThatAreHalfACycleApartAreAGroup) {
  Use("muri-s");
  StagedJobs jobs({1});
  jobs.Add(1, {.iteration = 13, .stages = {8, 5, 0}}, 10);
  jobs.Add(1, {.iteration = 9, .stages = {1, 1, 7}}, 20);
  const std::vector<Demand> demands = Decide(jobs);
  ASSERT_EQ(demands.size(), 1U);
  EXPECT_EQ(demands[0].job, JobAt(0));
  EXPECT_EQ(demands[0].partners, std::vector{JobAt(1)});
}

TEST_F(MuriTest, AGroupIsOneInterleavedDemand) {
  Use("muri-s");
  StagedJobs jobs({1});
  jobs.Add(1, kLoads, 10);
  jobs.Add(1, kComputes, 20);
  EXPECT_TRUE(policy_->traits().may.share);
  const std::vector<Demand> demands = Decide(jobs);
  ASSERT_EQ(demands.size(), 1U);
  EXPECT_EQ(demands[0].sharing, Sharing::kInterleaved);
  EXPECT_EQ(demands[0].gpus, 1);
  EXPECT_EQ(demands[0].partners.size(), 1U);
}

TEST_F(MuriTest, AJobAloneIsExclusive) {
  Use("muri-s");
  StagedJobs jobs({1});
  jobs.Add(1, kLoads, 10);
  EXPECT_EQ(Decide(jobs).at(0).sharing, Sharing::kExclusive);
}

TEST_F(MuriTest, AGroupThatRunsKeepsItsOrder) {
  Use("muri-s");
  StagedJobs jobs({1});
  JobView& a = jobs.Add(1, kLoads, 10);
  JobView& b = jobs.Add(1, kComputes, 20);
  const Grant held{
      .gpus = 1, .sharing = Sharing::kInterleaved, .group = {JobAt(1), JobAt(0)}, .running = true};
  a.grant = &held;
  b.grant = &held;
  const std::vector<Demand> demands = Decide(jobs);
  ASSERT_EQ(demands.size(), 1U);
  EXPECT_EQ(demands[0].job, JobAt(1));
  EXPECT_EQ(demands[0].partners, std::vector<JobId>{JobAt(0)});
}

TEST_F(MuriTest, WhoHoldsGpusLeadsTheGroupSoThatItMayStay) {
  Use("muri-s");
  StagedJobs jobs({1});
  jobs.Add(1, kLoads, 10);
  const Grant held{.gpus = 1};
  jobs.Add(1, kComputes, 20).grant = &held;
  EXPECT_EQ(Decide(jobs).at(0).job, JobAt(1));
}

TEST_F(MuriTest, BeforeItsFirstRunAJobMayCountByItsDeclaredDuration) {
  StagedJobs jobs({1});
  jobs.Add(1, kLoads, 10).time_left = FromSeconds(30);
  jobs.Add(1, kLoads, 20).time_left = FromSeconds(20);
  Use("muri-s:size=1");
  EXPECT_EQ(Decide(jobs).at(0).job, JobAt(1));
  Use("muri-s:size=1,unstarted=declared");
  EXPECT_EQ(Decide(jobs).at(0).job, JobAt(0));
}

TEST_F(MuriTest, TheSizeOfAGroupIsLimited) {
  EXPECT_EQ(PolicyError("muri-s:size=5"), "policy 'muri-s': size is 5; expected 1, 2, 3 or 4");
  EXPECT_EQ(PolicyError("muri-l:size=0"), "policy 'muri-l': size is 0; expected 1, 2, 3 or 4");
  EXPECT_EQ(PolicyError("muri-l:size=1.5"), "policy 'muri-l': size is 1.5; expected 1, 2, 3 or 4");
}

}  // namespace
}  // namespace trainyard::policies
