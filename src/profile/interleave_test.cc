// SPDX-License-Identifier: Apache-2.0
#include "profile/interleave.h"

#include <gtest/gtest.h>

namespace trainyard::profile {
namespace {

using Group = std::vector<const StageTimes*>;

// Stage times in seconds: loading, GPU, network; one GPU, as measured for Muri.
const StageTimes kBert{.iteration = 0.178, .stages = {0.0005, 0.160, 0}};
const StageTimes kDqn{.iteration = 0.490, .stages = {0.446, 0.008, 0}};
const StageTimes kVgg{.iteration = 0.107, .stages = {0.117, 0.068, 0}};

double Best(const Group& group) { return Interleave(group, StageOrder::kBest).seconds; }
double Worst(const Group& group) { return Interleave(group, StageOrder::kWorst).seconds; }

// The worked example of the concepts page, 5.2.
TEST(InterleaveTest, LoadingHidesBehindTheGpuStageOfTheOther) {
  EXPECT_NEAR(Best({&kBert, &kDqn}), 0.454, 1e-12);
  EXPECT_NEAR(Best({&kBert, &kDqn, &kVgg}), 0.454, 1e-12);
}

TEST(InterleaveTest, TheOrderOfTheArgumentsDoesNotMatter) {
  EXPECT_EQ(Best({&kVgg, &kBert, &kDqn}), Best({&kDqn, &kVgg, &kBert}));
  EXPECT_EQ(Worst({&kVgg, &kBert, &kDqn}), Worst({&kDqn, &kVgg, &kBert}));
}

TEST(InterleaveTest, TheWorstOrderTakesLonger) {
  EXPECT_GT(Worst({&kBert, &kDqn}), Best({&kBert, &kDqn}));
}

// Half a cycle apart: max(8, 1 + 7) + max(1, 5 + 0) = 13, which no other positions reach.
TEST(InterleaveTest, TwoJobsMayLieHalfACycleApart) {
  const StageTimes a{.iteration = 1, .stages = {8, 5, 0}};
  const StageTimes b{.iteration = 1, .stages = {1, 1, 7}};
  const Interleaving found = Interleave(Group{&a, &b}, StageOrder::kBest);
  EXPECT_EQ(found.seconds, 13);
  EXPECT_EQ(found.positions[0], 0);
  EXPECT_EQ(found.positions[1], 2);
}

// One job is at its first stage while the other is at its second.
TEST(InterleaveTest, EachOfTwoStagesHasItsPhase) {
  const StageTimes a{.iteration = 4, .stages = {3, 1}};
  const StageTimes b{.iteration = 4, .stages = {1, 3}};
  EXPECT_EQ(Best({&a, &b}), 4);
  EXPECT_EQ(Best({&a, &a}), 6);
  const StageTimes c{.iteration = 4, .stages = {1, 1}};
  EXPECT_EQ(Best({&a, &c}), 4);
}

TEST(InterleaveTest, FourStagesOfFourJobsAreDealtOut) {
  std::vector<StageTimes> jobs(4);
  Group group;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].stages.assign(4, 1);
    jobs[i].stages[i] = 5;
    group.push_back(&jobs[i]);
  }
  EXPECT_EQ(Best(group), 8);    // the long stages coincide
  EXPECT_EQ(Worst(group), 16);  // they fall into three phases; no order spreads them over four
}

TEST(GroupTimesTest, SharingSlowsAGroupDownBySize) {
  GroupTimes times({.order = StageOrder::kBest, .slowdown = {1.015, 1.5, 2, 3}});
  EXPECT_DOUBLE_EQ(times.Of(Group{&kBert}), 0.178 * 1.015);
  EXPECT_DOUBLE_EQ(times.Of(Group{&kBert, &kDqn}), 0.454 * 1.5);
  EXPECT_DOUBLE_EQ(times.Of(Group{&kVgg, &kBert, &kDqn}), 0.454 * 2);
}

TEST(GroupTimesTest, KnownGroupsAreFoundAgainInAnyOrder) {
  GroupTimes times({.order = StageOrder::kWorst});
  const double first = times.Of(Group{&kBert, &kDqn, &kDqn});
  const StageTimes same_as_dqn = kDqn;
  EXPECT_EQ(times.Of(Group{&same_as_dqn, &kBert, &kDqn}), first);
  EXPECT_NE(times.Of(Group{&kBert, &kBert, &kDqn}), first);
}

}  // namespace
}  // namespace trainyard::profile
