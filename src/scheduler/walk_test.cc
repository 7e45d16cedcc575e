// SPDX-License-Identifier: Apache-2.0
#include "scheduler/walk.h"

#include <gtest/gtest.h>

#include <deque>

#include "support/lowest_node.h"

namespace trainyard::scheduler {
namespace {

// Jobs that hold something or nothing.
class Jobs final : public JobTable {
 public:
  explicit Jobs(std::size_t count) : grants_(count) {
    for (std::size_t i = 0; i < count; ++i) {
      ids_.push_back(JobAt(i));
    }
  }
  void Hold(std::size_t job, Grant grant) { grants_[job] = std::move(grant); }
  [[nodiscard]] std::span<const JobId> live() const override { return ids_; }
  [[nodiscard]] JobView at(JobId job) const override {
    const Grant& held = grants_[Index(job)];
    return {.id = job, .spec = &spec_, .grant = held.gpus > 0 ? &held : nullptr};
  }

 private:
  const JobSpec spec_{.name = "job"};
  std::vector<Grant> grants_;
  std::vector<JobId> ids_;
};

Grant On(std::size_t node, std::uint64_t mask, int gpus) {
  return {.gpus = gpus, .slices = {{.node = NodeAt(node), .gpus = mask}}};
}

// Two nodes of four GPUs, and demands of jobs 0, 1, 2 ... in this order of priority.
class WalkTest : public testing::Test {
 protected:
  Selection WalkThrough(const std::vector<int>& gpus, Misfit misfit = Misfit::kSkip) {
    std::vector<Demand> demands;
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      demands.push_back({JobAt(i), gpus[i]});
    }
    return WalkDemands(demands, {.misfit = misfit}, jobs_, packing_);
  }
  static std::vector<std::size_t> PlacedJobs(const Selection& selection) {
    std::vector<std::size_t> jobs;
    for (const Placed& placed : selection.placed) {
      jobs.push_back(Index(placed.job));
    }
    return jobs;
  }
  static void ExpectBlocked(const model::Blocked& blocked, std::size_t first, int gpus,
                            model::WaitReason reason) {
    EXPECT_EQ(Index(blocked.first), first);
    EXPECT_EQ(blocked.gpus, gpus);
    EXPECT_EQ(blocked.reason, reason);
  }

  const Cluster cluster_{.nodes = {NodeSpec{.gpus = 4}, NodeSpec{.gpus = 4}}};
  const LowestNode placement_{};
  Jobs jobs_{8};
  Packing packing_{cluster_, &placement_};
};

using JobNumbers = std::vector<std::size_t>;

TEST_F(WalkTest, PlacesDemandsInTheirOrder) {
  const Selection selection = WalkThrough({4, 2, 2});
  EXPECT_TRUE(selection.complete);
  EXPECT_EQ(PlacedJobs(selection), JobNumbers({0, 1, 2}));
  EXPECT_EQ(selection.placed[1].grant, On(1, 0b0011, 2));
  EXPECT_TRUE(selection.blocked.empty());
  EXPECT_EQ(packing_.free_gpus(), 0);
}

TEST_F(WalkTest, AnInterleavedGroupIsPlacedOnceForAllItsMembers) {
  std::vector<Demand> demands(1);
  demands[0] = {.job = JobAt(3),
                .gpus = 2,
                .sharing = Sharing::kInterleaved,
                .partners = {JobAt(1), JobAt(5)}};
  const Selection selection = WalkDemands(demands, {}, jobs_, packing_);
  EXPECT_EQ(packing_.free_gpus(), 6);
  ASSERT_EQ(selection.placed.size(), 3U);
  for (const Placed& placed : selection.placed) {
    EXPECT_EQ(placed.grant.slices, On(0, 0b0011, 2).slices);
    EXPECT_EQ(placed.grant.group, (std::vector<JobId>{JobAt(3), JobAt(1), JobAt(5)}));
  }
}

TEST_F(WalkTest, AMisfitIsPassedOver) {
  const Selection selection = WalkThrough({3, 3, 4, 1});
  EXPECT_EQ(PlacedJobs(selection), JobNumbers({0, 1, 3}));
  ASSERT_EQ(selection.blocked.size(), 1U);
  ExpectBlocked(selection.blocked[0], 2, 4, model::WaitReason::kGpus);
}

TEST_F(WalkTest, InStrictOrderNothingBehindAMisfitIsTried) {
  const Selection selection = WalkThrough({3, 3, 4, 1, 2}, Misfit::kStop);
  EXPECT_EQ(PlacedJobs(selection), JobNumbers({0, 1}));
  ASSERT_EQ(selection.blocked.size(), 3U);
  ExpectBlocked(selection.blocked[0], 2, 4, model::WaitReason::kGpus);
  ExpectBlocked(selection.blocked[1], 3, 1, model::WaitReason::kBehindHead);
  ExpectBlocked(selection.blocked[2], 4, 2, model::WaitReason::kBehindHead);
}

TEST_F(WalkTest, EnoughGpusInTheWrongPlacesAreALackOfLocality) {
  const Selection selection = WalkThrough({3, 2, 3});
  ASSERT_EQ(selection.blocked.size(), 1U);
  ExpectBlocked(selection.blocked[0], 2, 3, model::WaitReason::kLocality);
}

TEST_F(WalkTest, ADemandClassIsBlockedOnceWithItsBestJob) {
  const Selection selection = WalkThrough({4, 3, 4, 4, 2, 2});
  ASSERT_EQ(selection.blocked.size(), 2U);
  ExpectBlocked(selection.blocked[0], 2, 4, model::WaitReason::kGpus);
  ExpectBlocked(selection.blocked[1], 4, 2, model::WaitReason::kGpus);
}

TEST_F(WalkTest, AJobStaysOnTheGpusThatItHolds) {
  jobs_.Hold(1, On(1, 0b1100, 2));
  const Selection selection = WalkThrough({2, 2});
  EXPECT_EQ(selection.placed[0].grant, On(0, 0b0011, 2));
  EXPECT_EQ(selection.placed[1].grant, On(1, 0b1100, 2));
}

TEST_F(WalkTest, AllArePlacedAnewUnlessRunningJobsKeepTheirGpus) {
  jobs_.Hold(0, On(1, 0b1100, 2));
  std::vector<Demand> demands{{JobAt(0), 2}};
  const Selection selection = WalkDemands(demands, {.keep_running = false}, jobs_, packing_);
  EXPECT_EQ(selection.placed[0].grant, On(0, 0b0011, 2));
}

TEST_F(WalkTest, ADemandOfNothingIsPlaced) {
  const Selection selection = WalkThrough({4, 4, 0});
  EXPECT_EQ(PlacedJobs(selection), JobNumbers({0, 1, 2}));
  EXPECT_EQ(selection.placed[2].grant, Grant{});
}

TEST_F(WalkTest, NoDemandsPlaceNothing) {
  const Selection selection = WalkThrough({});
  EXPECT_TRUE(selection.complete);
  EXPECT_TRUE(selection.placed.empty());
}

// ------------------------------------------------------------------------------- the second pass

class PlaceSelectedTest : public WalkTest {
 protected:
  static Selection Counted(const std::vector<int>& gpus) {
    Selection selection;
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      selection.placed.push_back({JobAt(i), {.gpus = gpus[i], .slices = {}}});
    }
    return selection;
  }
};

TEST_F(PlaceSelectedTest, TheLargestIsPlacedFirst) {
  // In the order of the walk 1 and 3 would share a node with 4 on the other.
  const Selection placed = PlaceSelected(Counted({1, 3, 4}), {}, jobs_, packing_);
  EXPECT_EQ(PlacedJobs(placed), JobNumbers({2, 1, 0}));
  EXPECT_EQ(placed.placed[0].grant, On(0, 0b1111, 4));
  EXPECT_EQ(placed.placed[1].grant, On(1, 0b0111, 3));
  EXPECT_EQ(placed.placed[2].grant, On(1, 0b1000, 1));
  EXPECT_TRUE(placed.complete);
}

TEST_F(PlaceSelectedTest, EqualSizesKeepTheOrderOfTheWalk) {
  EXPECT_EQ(PlacedJobs(PlaceSelected(Counted({2, 2, 4}), {}, jobs_, packing_)),
            JobNumbers({2, 0, 1}));
}

TEST_F(PlaceSelectedTest, WhatWasPackedBeforeIsCleared) {
  packing_.Add(JobSpec(), On(0, 0b1111, 4));
  const Selection placed = PlaceSelected(Counted({4}), {}, jobs_, packing_);
  EXPECT_EQ(placed.placed[0].grant, On(0, 0b1111, 4));
  EXPECT_EQ(packing_.free_gpus(), 4);
}

TEST_F(PlaceSelectedTest, AJobStaysOnTheGpusThatItHolds) {
  jobs_.Hold(0, On(1, 0b1100, 2));
  EXPECT_EQ(PlaceSelected(Counted({2}), {}, jobs_, packing_).placed[0].grant, On(1, 0b1100, 2));
}

TEST_F(PlaceSelectedTest, AllArePlacedAnewUnlessRunningJobsKeepTheirGpus) {
  jobs_.Hold(0, On(1, 0b1100, 2));
  const Selection placed = PlaceSelected(Counted({2}), {.keep_running = false}, jobs_, packing_);
  EXPECT_EQ(placed.placed[0].grant, On(0, 0b0011, 2));
}

TEST_F(PlaceSelectedTest, WhatDoesNotFitIsDroppedAndBlocked) {
  // 8 GPUs were counted, but gangs of 3, 3 and 2 do not fit on two nodes of 4.
  const Selection placed = PlaceSelected(Counted({2, 3, 3}), {}, jobs_, packing_);
  EXPECT_EQ(PlacedJobs(placed), JobNumbers({1, 2}));
  ASSERT_EQ(placed.blocked.size(), 1U);
  ExpectBlocked(placed.blocked[0], 0, 2, model::WaitReason::kLocality);
}

TEST_F(PlaceSelectedTest, WhatWasBlockedBeforeStaysBlocked) {
  Selection counted = Counted({2});
  counted.blocked.push_back({JobAt(5), 8, model::WaitReason::kGpus});
  const Selection placed = PlaceSelected(counted, {}, jobs_, packing_);
  ASSERT_EQ(placed.blocked.size(), 1U);
  ExpectBlocked(placed.blocked[0], 5, 8, model::WaitReason::kGpus);
}

}  // namespace
}  // namespace trainyard::scheduler
