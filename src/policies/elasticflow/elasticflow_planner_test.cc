// SPDX-License-Identifier: Apache-2.0
#include "policies/elasticflow/elasticflow_planner.h"

#include <gtest/gtest.h>

#include <random>

namespace trainyard::policies {
namespace {

using std::chrono::seconds;

// 1, 2 and 4 GPUs do 1, 1.8 and 3 units per second (engine-concepts 5.1).
Scaling ThreeLevels(int cost = 0) {
  Scaling scaling;
  for (const auto& [gpus, rate] : {std::pair{1, 1.0}, {2, 1.8}, {4, 3.0}}) {
    scaling.levels.push_back({.gpus = gpus,
                              .rate = rate,
                              .start = seconds(cost),
                              .restart = seconds(cost),
                              .resize = seconds(cost)});
  }
  return scaling;
}

GpuTimeline Free(int gpus) { return {TimePoint{}, gpus}; }

// Follows a plan in steps of its own; the end, or none within a long time.
double EndWhenFollowed(const GpuPlan& plan, const Scaling& scaling, PlannedState state) {
  double left = state.work_left;
  double debt = Seconds(state.debt);
  int held = state.level < 0 ? 0 : scaling.levels[static_cast<std::size_t>(state.level)].gpus;
  bool started = state.started;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const bool last = i + 1 == plan.steps.size();
    double length = last ? 1e12 : Seconds(plan.steps[i + 1].from - plan.steps[i].from);
    double at = Seconds(plan.steps[i].from);
    const int gpus = plan.steps[i].gpus;
    if (gpus == 0) {
      held = 0;
      debt = 0;
      continue;
    }
    const Scaling::Level& level = scaling.levels[static_cast<std::size_t>(scaling.Under(gpus))];
    if (gpus != held) {
      debt += Seconds(held > 0 ? level.resize : started ? level.restart : level.start);
    }
    held = gpus;
    started = true;
    const double paid = std::min(debt, length);
    debt -= paid;
    at += paid;
    length -= paid;
    if (left <= length * level.rate) {
      return at + left / level.rate;
    }
    left -= length * level.rate;
  }
  return -1;
}

TEST(ScalingTest, LevelsThatDoNotHelpAreLeftOut) {
  class Rates final : public ExecutionModel {
   public:
    [[nodiscard]] double TotalWork(const JobSpec& /*job*/) const override { return 1; }
    [[nodiscard]] double Rate(const JobSpec& /*job*/, int gpus) const override {
      return gpus == 4 ? 1.5 : gpus == 8 ? 1.4 : gpus;
    }
    [[nodiscard]] std::span<const int> Levels(const JobSpec& /*job*/) const override {
      static constexpr std::array kLevels{1, 2, 4, 8};
      return kLevels;
    }
  } rates;
  class Costs final : public RestartCosts {
   public:
    [[nodiscard]] Duration Of(const JobSpec& /*job*/, Change change, int gpus) const override {
      return seconds(change == Change::kResize ? gpus : 10 * gpus);
    }
  } costs;
  const Scaling scaling = ScalingOf({}, rates, costs);
  ASSERT_EQ(scaling.levels.size(), 2U);  // 4 and 8 GPUs are slower than 2
  EXPECT_EQ(scaling.levels[1].gpus, 2);
  EXPECT_EQ(scaling.levels[1].resize, seconds(2));
  EXPECT_EQ(scaling.levels[1].start, seconds(20));
  EXPECT_EQ(scaling.Under(100), 1);
  EXPECT_EQ(scaling.Under(1), 0);
  EXPECT_EQ(scaling.Under(0), -1);
}

TEST(JobPlannerTest, TheLeastThatIsEnoughAsLateAsPossible) {
  const Scaling scaling = ThreeLevels();
  const GpuTimeline free = Free(4);
  const JobPlanner planner(scaling, free);
  // 1 GPU has time to spare: it starts late.
  const auto one = planner.InTime({.work_left = 100}, AtSeconds(300));
  ASSERT_TRUE(one);
  ASSERT_EQ(one->steps.size(), 2U);
  EXPECT_EQ(one->steps[0].gpus, 0);
  EXPECT_EQ(one->steps[1].gpus, 1);
  EXPECT_NEAR(Seconds(one->steps[1].from), 200, 1.01);
  EXPECT_LE(one->end, AtSeconds(300));
  // 600 units in 420 s: 1 GPU as long as possible, then 2.
  const auto two = planner.InTime({.work_left = 600}, AtSeconds(420));
  ASSERT_TRUE(two);
  ASSERT_EQ(two->steps.size(), 2U);
  EXPECT_EQ(two->steps[0].gpus, 1);
  EXPECT_EQ(two->steps[1].gpus, 2);
  EXPECT_NEAR(Seconds(two->steps[1].from), 195, 1.01);  // t + 1.8 (420 - t) = 600
}

TEST(JobPlannerTest, NothingWhereNoNumberOfGpusIsEnough) {
  const Scaling scaling = ThreeLevels();
  const GpuTimeline free = Free(4);
  const JobPlanner planner(scaling, free);
  EXPECT_TRUE(planner.InTime({.work_left = 299}, AtSeconds(100)));
  EXPECT_FALSE(planner.InTime({.work_left = 301}, AtSeconds(100)));
  EXPECT_FALSE(planner.InTime({.work_left = 1}, TimePoint{}));
}

TEST(JobPlannerTest, RestartCostsArePartOfThePlan) {
  const Scaling scaling = ThreeLevels(10);
  const GpuTimeline free = Free(4);
  const JobPlanner planner(scaling, free);
  EXPECT_TRUE(planner.InTime({.work_left = 269}, AtSeconds(100)));  // 90 s of 4 GPUs
  EXPECT_FALSE(planner.InTime({.work_left = 271}, AtSeconds(100)));
  // Who holds 4 GPUs already does not start again; who owes something pays it first.
  EXPECT_TRUE(planner.InTime({.work_left = 299, .level = 2, .started = true}, AtSeconds(100)));
  EXPECT_FALSE(planner.InTime({.work_left = 299, .level = 2, .started = true, .debt = seconds(1)},
                              AtSeconds(100)));
}

TEST(JobPlannerTest, SoonestTakesWhatIsFree) {
  const Scaling scaling = ThreeLevels();
  GpuTimeline free = Free(4);
  GpuPlan other;
  other.Append(TimePoint{}, 3);
  other.end = AtSeconds(50);
  free.Take(other);
  const auto plan = JobPlanner(scaling, free).Soonest({.work_left = 350});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->steps, (std::vector<GpuStep>{{TimePoint{}, 1}, {AtSeconds(50), 4}}));
  EXPECT_EQ(plan->end, AtSeconds(150));
  const GpuTimeline none = Free(0);
  EXPECT_FALSE(JobPlanner(scaling, none).Soonest({.work_left = 1}));
}

TEST(JobPlannerTest, HoldsALevelUntilItIsNeededElsewhere) {
  const Scaling scaling = ThreeLevels();
  GpuTimeline free = Free(4);
  GpuPlan other;
  other.Append(TimePoint{}, 0);
  other.Append(AtSeconds(100), 3);
  other.end = AtSeconds(500);
  free.Take(other);
  const JobPlanner planner(scaling, free);
  const auto plan = planner.InTimeHolding(2, {.work_left = 400}, AtSeconds(400));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->steps.front(), (GpuStep{TimePoint{}, 4}));
  EXPECT_EQ(plan->At(AtSeconds(100)), 0);  // 300 done, 100 left, 1 GPU from 300 at the latest
  EXPECT_LE(plan->end, AtSeconds(400));
  EXPECT_FALSE(planner.InTimeHolding(2, {.work_left = 700}, AtSeconds(400)));
}

// Whatever is free and whatever restarts cost: a plan never takes more than is free, is in time,
// and ends when it says.
TEST(JobPlannerTest, PlansAreWhatTheyClaim) {
  std::mt19937 random(7);
  int made = 0;
  for (int round = 0; round < 3000; ++round) {
    const Scaling scaling = ThreeLevels(static_cast<int>(random() % 20));
    GpuTimeline free = Free(4);
    for (int i = 0; i < 4; ++i) {
      GpuPlan other;
      int at = static_cast<int>(random() % 300);
      other.Append(AtSeconds(at), 1);
      at += 1 + static_cast<int>(random() % 200);
      other.end = AtSeconds(at);
      free.Take(other);
    }
    const PlannedState state{.work_left = 1 + static_cast<double>(random() % 800),
                             .level = static_cast<int>(random() % 4) - 1,
                             .started = random() % 2 == 0,
                             .debt = seconds(random() % 5)};
    const TimePoint deadline = AtSeconds(static_cast<double>(1 + random() % 600));
    const JobPlanner planner(scaling, free);
    const auto plan =
        random() % 2 == 0
            ? planner.InTime(state, deadline)
            : planner.InTimeHolding(scaling.Under(free.now()) < 0 ? 0 : scaling.Under(free.now()),
                                    state, deadline);
    if (!plan || free.now() == 0) {
      continue;
    }
    ++made;
    EXPECT_LE(plan->end, deadline);
    EXPECT_NEAR(EndWhenFollowed(*plan, scaling, state), Seconds(plan->end), 1e-3);
    EXPECT_NEAR(Seconds(planner.EndOf(*plan, state).value_or(TimePoint{})), Seconds(plan->end),
                1e-3);
    GpuTimeline rest = free;
    rest.Take(*plan);
    for (const GpuStep& step : rest.steps()) {
      EXPECT_GE(step.gpus, 0);
    }
  }
  EXPECT_GT(made, 500);
}

TEST(PublishedCapTest, TheCapIsTheBatchSizeUpTo64) {
  EXPECT_EQ(PublishedCap({.batch_size = 16}), 16);
  EXPECT_EQ(PublishedCap({.batch_size = 64}), 64);
  EXPECT_EQ(PublishedCap({.batch_size = 1'000'000'000'000}), 64);
  EXPECT_EQ(PublishedCap({.batch_size = 0}), 64) << "not known";
}

}  // namespace
}  // namespace trainyard::policies
