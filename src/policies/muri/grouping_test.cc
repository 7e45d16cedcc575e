// SPDX-License-Identifier: Apache-2.0
#include "policies/muri/grouping.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/staged_jobs.h"

namespace trainyard::policies {
namespace {

using GroupIds = std::vector<std::size_t>;
using Groups = std::vector<GroupIds>;

class GroupingTest : public testing::Test {
 protected:
  // Jobs in order of rank, which is their number; members ascending.
  Groups Group(StagedJobs& jobs, const GroupingRules& rules = {}) {
    const Snapshot snapshot = jobs.At(0);
    const std::vector<RankedJob> ranked = jobs.Ranked();
    Groups groups;
    solver::MatchingMemo memo;
    for (const JobGroup& group : GroupJobs(rules, snapshot, ranked, NodeRoom(snapshot), memo)) {
      GroupIds ids;
      for (const RankedJob* const job : group.members) {
        ids.push_back(Index(job->id));
      }
      std::sort(ids.begin(), ids.end());
      groups.push_back(ids);
    }
    return groups;
  }
};

TEST_F(GroupingTest, NobodySharesWhereThereIsRoomForAll) {
  StagedJobs jobs({2});
  jobs.Add(1, kLoads, 10);
  jobs.Add(1, kComputes, 10);
  EXPECT_EQ(Group(jobs), Groups({{0}, {1}}));
}

TEST_F(GroupingTest, WhoUsesDifferentResourcesGoesTogether) {
  StagedJobs jobs({2});
  jobs.Add(1, kLoads, 10);
  jobs.Add(1, kLoads, 10);
  jobs.Add(1, kComputes, 10);
  jobs.Add(1, kComputes, 10);
  EXPECT_EQ(Group(jobs), Groups({{0, 2}, {1, 3}}));
}

TEST_F(GroupingTest, NoMoreAreGroupedThanMustBe) {
  StagedJobs jobs({2});
  jobs.Add(1, kLoads, 10);
  jobs.Add(1, kComputes, 10);
  jobs.Add(1, kComputes, 10);
  EXPECT_EQ(Group(jobs), Groups({{0, 1}, {2}}));
}

TEST_F(GroupingTest, RoundAfterRoundGroupsGrow) {
  StagedJobs jobs({1});
  jobs.Add(1, kLoads, 10);
  jobs.Add(1, kComputes, 10);
  jobs.Add(1, kTalks, 10);
  EXPECT_EQ(Group(jobs), Groups({{0, 1, 2}}));
  EXPECT_EQ(Group(jobs, {.largest = 2}), Groups({{0, 1}}));
}

TEST_F(GroupingTest, OnlyJobsOfOneSizeShare) {
  StagedJobs jobs({2});
  jobs.Add(2, kLoads, 10);
  jobs.Add(1, kComputes, 10);
  EXPECT_EQ(Group(jobs), Groups({{0}}));
}

TEST_F(GroupingTest, AGroupSlowerThanItsJobsOneByOneIsSplit) {
  StagedJobs jobs({1});
  const StageTimes hides_all{.iteration = 0.1, .stages = {0.1, 0.1, 0.1}};
  jobs.Add(1, hides_all, 10);
  jobs.Add(1, hides_all, 10);
  EXPECT_EQ(Group(jobs), Groups({{0}}));
  EXPECT_EQ(Group(jobs, {.split = false}), Groups({{0, 1}}));
}

TEST_F(GroupingTest, WithoutMatchingNeighboursGoTogether) {
  StagedJobs jobs({2});
  jobs.Add(1, kLoads, 10);
  jobs.Add(1, kLoads, 10);
  jobs.Add(1, kComputes, 10);
  jobs.Add(1, kComputes, 10);
  EXPECT_EQ(Group(jobs, {.largest = 2, .matched = false, .split = false}),
            Groups({{0, 1}, {2, 3}}));
}

TEST_F(GroupingTest, JobsWithoutStagesStayAlone) {
  StagedJobs jobs({1});
  jobs.AddPlain(1, 10);
  jobs.Add(1, kComputes, 10);
  EXPECT_EQ(Group(jobs), Groups({{0}}));
}

TEST_F(GroupingTest, EquallyGoodGroupsThatRunAreKept) {
  StagedJobs jobs({2});
  for (const StageTimes& stages : {kLoads, kLoads, kComputes, kComputes}) {
    jobs.Add(1, stages, 10);
  }
  const Grant first{.gpus = 1, .sharing = Sharing::kInterleaved, .group = {JobAt(0), JobAt(3)}};
  const Grant second{.gpus = 1, .sharing = Sharing::kInterleaved, .group = {JobAt(2), JobAt(1)}};
  jobs.jobs().view(JobAt(0)).grant = &first;
  jobs.jobs().view(JobAt(3)).grant = &first;
  jobs.jobs().view(JobAt(1)).grant = &second;
  jobs.jobs().view(JobAt(2)).grant = &second;
  EXPECT_EQ(Group(jobs), Groups({{0, 3}, {1, 2}}));
  EXPECT_EQ(Group(jobs, {.keep = false}), Groups({{0, 2}, {1, 3}}));
}

// bench/decisions measures how long it takes.
TEST_F(GroupingTest, AThousandJobsOfSixteenProfilesAreGrouped) {
  StagedJobs jobs(std::vector<int>(32, 8));
  for (int i = 0; i < 1000; ++i) {
    const double load = 0.05 + 0.1 * (i % 4);
    const double gpu = 0.02 + 0.08 * (i / 4 % 4);
    jobs.Add(1, {.iteration = load + gpu, .stages = {load, gpu, 0.01}}, 10);
  }
  EXPECT_FALSE(Group(jobs).empty());
}

}  // namespace
}  // namespace trainyard::policies
