// SPDX-License-Identifier: Apache-2.0
#include "policies/elasticflow/gpu_timeline.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace trainyard::policies {
namespace {

GpuPlan PlanOf(std::initializer_list<std::pair<int, int>> steps, int end) {
  GpuPlan plan;
  for (const auto& [from, gpus] : steps) {
    plan.Append(AtSeconds(from), gpus);
  }
  plan.end = AtSeconds(end);
  return plan;
}

std::vector<GpuStep> Steps(std::initializer_list<std::pair<int, int>> steps) {
  return PlanOf(steps, 0).steps;
}

std::vector<GpuStep> StepsOf(const GpuTimeline& timeline) {
  return {timeline.steps().begin(), timeline.steps().end()};
}

TEST(GpuPlanTest, HoldsNothingOutsideItsTime) {
  const GpuPlan plan = PlanOf({{10, 4}, {20, 2}}, 30);
  EXPECT_EQ(plan.At(AtSeconds(9)), 0);
  EXPECT_EQ(plan.At(AtSeconds(10)), 4);
  EXPECT_EQ(plan.At(AtSeconds(20)), 2);
  EXPECT_EQ(plan.At(AtSeconds(30)), 0);
}

TEST(GpuPlanTest, EqualNeighboursAreOneStep) {
  EXPECT_EQ(PlanOf({{0, 2}, {5, 2}, {9, 1}}, 10).steps, Steps({{0, 2}, {9, 1}}));
  EXPECT_EQ(PlanOf({{0, 2}, {0, 3}}, 10).steps, Steps({{0, 3}}));  // the later one counts
}

TEST(GpuPlanTest, TheCutPlanBeginsNow) {
  GpuPlan plan = PlanOf({{0, 2}, {5, 4}, {9, 1}}, 20);
  plan.CutBefore(AtSeconds(6));
  EXPECT_EQ(plan.steps, Steps({{6, 4}, {9, 1}}));
  plan.CutBefore(AtSeconds(9));
  EXPECT_EQ(plan.steps, Steps({{9, 1}}));
}

TEST(GpuPlanTest, GpuSecondsFromAMoment) {
  const GpuPlan plan = PlanOf({{0, 2}, {5, 4}}, 10);
  EXPECT_EQ(plan.GpuSeconds(AtSeconds(0)), 2 * 5 + 4 * 5);
  EXPECT_EQ(plan.GpuSeconds(AtSeconds(7)), 4 * 3);
}

TEST(GpuTimelineTest, WhatIsTakenComesBack) {
  GpuTimeline free(AtSeconds(0), 8);
  const GpuPlan plan = PlanOf({{0, 4}, {10, 8}}, 30);
  free.Take(plan);
  EXPECT_EQ(StepsOf(free), Steps({{0, 4}, {10, 0}, {30, 8}}));
  free.Return(plan);
  EXPECT_EQ(StepsOf(free), Steps({{0, 8}}));
}

TEST(GpuTimelineTest, ThePastOfAPlanDoesNotCount) {
  GpuTimeline free(AtSeconds(20), 8);
  free.Take(PlanOf({{0, 4}, {10, 2}}, 30));
  EXPECT_EQ(StepsOf(free), Steps({{20, 6}, {30, 8}}));
  free.Take(PlanOf({{0, 4}}, 20));
  EXPECT_EQ(StepsOf(free), Steps({{20, 6}, {30, 8}}));
}

// Against an array with one number for each second.
TEST(GpuTimelineTest, ManyPlansAgreeWithSeconds) {
  constexpr int kSeconds = 60;
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::array<int, kSeconds> expected{};
    expected.fill(100);
    GpuTimeline free(AtSeconds(0), 100);
    std::vector<GpuPlan> plans;
    for (int i = 0; i < 8; ++i) {
      GpuPlan plan;
      int at = static_cast<int>(random() % 20);
      for (int step = 0; step < 3; ++step) {
        plan.Append(AtSeconds(at), static_cast<int>(random() % 5));
        at += 1 + static_cast<int>(random() % 10);
      }
      plan.end = AtSeconds(at);
      free.Take(plan);
      plans.push_back(plan);
    }
    free.Return(plans[3]);
    plans.erase(plans.begin() + 3);
    std::size_t step = 0;
    for (int second = 0; second < kSeconds; ++second) {
      for (const GpuPlan& plan : plans) {
        expected[static_cast<std::size_t>(second)] -= plan.At(AtSeconds(second));
      }
      while (step + 1 < free.steps().size() && free.steps()[step + 1].from <= AtSeconds(second)) {
        ++step;
      }
      ASSERT_EQ(free.steps()[step].gpus, expected[static_cast<std::size_t>(second)]) << second;
    }
    for (std::size_t i = 1; i < free.steps().size(); ++i) {
      EXPECT_NE(free.steps()[i].gpus, free.steps()[i - 1].gpus) << "equal neighbours";
    }
  }
}

}  // namespace
}  // namespace trainyard::policies
