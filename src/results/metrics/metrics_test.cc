// SPDX-License-Identifier: Apache-2.0
#include "results/metrics/metrics.h"

#include <gtest/gtest.h>

#include <array>

#include "support/hand_made_run.h"

namespace trainyard::results {
namespace {

TEST(MeasureTest, CountsJobs) {
  const Metrics metrics = Measure(HandMadeRun());
  EXPECT_EQ(metrics.jobs, 5);
  EXPECT_EQ(metrics.completed, 3);
  EXPECT_EQ(metrics.rejected, 1);
  EXPECT_EQ(metrics.unfinished, 1);
  EXPECT_EQ(metrics.admitted, 4);
  EXPECT_EQ(metrics.preemptions, 2);
  EXPECT_EQ(metrics.migrations, 1);
  EXPECT_EQ(metrics.resizes, 3);
}

TEST(MeasureTest, MeasuresJctOfCompletedJobs) {
  const Metrics metrics = Measure(HandMadeRun());  // 50.5, 100, 200
  EXPECT_DOUBLE_EQ(metrics.jct_mean.value(), 350.5 / 3);
  EXPECT_DOUBLE_EQ(metrics.jct_p50.value(), 100);
  EXPECT_DOUBLE_EQ(metrics.jct_p90.value(), 180);
  EXPECT_DOUBLE_EQ(metrics.jct_p99.value(), 198);
}

TEST(MeasureTest, MeasuresMakespanAndDelays) {
  const Metrics metrics = Measure(HandMadeRun());
  EXPECT_DOUBLE_EQ(metrics.makespan.value(), 240 - 10);
  EXPECT_DOUBLE_EQ(metrics.queueing_delay_mean.value(), (0.0 + 30 + 20) / 3);
  EXPECT_DOUBLE_EQ(metrics.waiting_time_mean.value(), (0.0 + 30 + 40 + 200) / 4);
}

TEST(MeasureTest, MeasuresHowMuchLongerJobsTakeThanTheyHadTo) {
  const Metrics metrics = Measure(HandMadeRun());
  EXPECT_DOUBLE_EQ(metrics.bounded_slowdown_mean.value(), (1 + 50.5 / 20.5 + 200.0 / 160) / 3);
}

// Below ten seconds a job counts as if it took ten.
TEST(MeasureTest, VeryShortJobsDoNotCountForMore) {
  RunResult run = RunOf({{.name = "short", .submit = AtSeconds(0)}});
  run.jobs[0].outcome = Outcome::kCompleted;
  run.jobs[0].end = run.jobs[0].logged = AtSeconds(40);
  run.jobs[0].productive = FromSeconds(1);
  EXPECT_DOUBLE_EQ(Measure(run).bounded_slowdown_mean.value(), 4);
}

TEST(MeasureTest, DividesServiceByGpusTimesMakespan) {
  const Metrics metrics = Measure(HandMadeRun());
  EXPECT_DOUBLE_EQ(metrics.gpu_utilization.value(), (200 + 20.5 + 1280) / (16 * 230.0));
  EXPECT_DOUBLE_EQ(metrics.gpu_utilization_useful.value(), (180 + 20.5 + 1200) / (16 * 230.0));
}

TEST(MeasureTest, RejectedAndUnfinishedDeadlineJobsCountAsMissed) {
  const Metrics metrics = Measure(HandMadeRun());
  EXPECT_EQ(metrics.deadline_jobs, 4);  // all but the best-effort job
  EXPECT_EQ(metrics.deadlines_met, 1);
  EXPECT_DOUBLE_EQ(metrics.deadline_ratio.value(), 0.25);
}

TEST(MeasureTest, EveryDeadlineJobIsMetLateOrRejected) {
  const Metrics metrics = Measure(HandMadeRun());
  EXPECT_EQ(metrics.deadlines_met, 1);
  EXPECT_EQ(metrics.deadlines_late, 2);  // "b" ends late, "e" is unfinished
  EXPECT_EQ(metrics.deadlines_rejected, 1);
  EXPECT_EQ(metrics.accepted, 1);
  EXPECT_EQ(metrics.declined, 3);
}

TEST(MeasureTest, RejectedJobsWithoutDeadlineAreDeclinedToo) {
  RunResult run = HandMadeRun();
  run.jobs[3].outcome = Outcome::kRejected;  // best effort
  const Metrics metrics = Measure(run);
  EXPECT_EQ(metrics.deadline_jobs, 4);
  EXPECT_EQ(metrics.deadlines_rejected, 1);
  EXPECT_EQ(metrics.accepted, 1);
  EXPECT_EQ(metrics.declined, 4);
}

TEST(MeasureTest, LoggedEndFeedsJctMakespanAndDeadlines) {
  RunResult run = HandMadeRun();
  run.uses_logged_end = true;
  run.jobs[3].logged = AtSeconds(250);
  const Metrics metrics = Measure(run);
  EXPECT_DOUBLE_EQ(metrics.jct_mean.value(), (101.0 + 52 + 210) / 3);
  EXPECT_DOUBLE_EQ(metrics.makespan.value(), 250 - 10);
  EXPECT_EQ(metrics.deadlines_met, 0);  // "a" is logged at 111, its deadline is 110
}

TEST(MeasureTest, WhatDoesNotApplyIsNone) {
  const Metrics metrics = Measure(RunOf({{.name = "never"}}));
  EXPECT_EQ(metrics.jobs, 1);
  EXPECT_FALSE(metrics.deadline_ratio.has_value());
  EXPECT_FALSE(metrics.jct_mean.has_value());
  EXPECT_FALSE(metrics.jct_p99.has_value());
  EXPECT_FALSE(metrics.makespan.has_value());
  EXPECT_FALSE(metrics.queueing_delay_mean.has_value());
  EXPECT_FALSE(metrics.gpu_utilization.has_value());
  EXPECT_DOUBLE_EQ(metrics.waiting_time_mean.value(), 0);
}

TEST(MeasureTest, ARunWithoutJobsHasNoMeans) {
  const Metrics metrics = Measure(RunResult{});
  EXPECT_EQ(metrics.jobs, 0);
  EXPECT_FALSE(metrics.waiting_time_mean.has_value());
  EXPECT_FALSE(FirstSubmit(RunResult{}).has_value());
}

TEST(MeasureTest, ARunThatTakesNoTimeHasNoUtilization) {
  RunResult run = RunOf({{.name = "instant"}});
  run.gpus = 4;
  run.jobs[0].outcome = Outcome::kCompleted;
  run.jobs[0].end = run.jobs[0].spec->submit;
  const Metrics metrics = Measure(run);
  EXPECT_DOUBLE_EQ(metrics.makespan.value(), 0);
  EXPECT_FALSE(metrics.gpu_utilization.has_value());
}

TEST(MeasureTest, CancelledAndFailedJobsHaveNoJct) {
  RunResult run = HandMadeRun();
  run.jobs[0].outcome = Outcome::kCancelled;
  run.jobs[1].outcome = Outcome::kFailed;
  const Metrics metrics = Measure(run);
  EXPECT_EQ(metrics.completed, 1);
  EXPECT_EQ(metrics.unfinished, 1);
  EXPECT_EQ(metrics.admitted, 4);
  EXPECT_DOUBLE_EQ(metrics.jct_mean.value(), 200);
  EXPECT_EQ(metrics.deadlines_met, 0);
}

TEST(DeadlineTest, EndingExactlyAtTheDeadlineMeetsIt) {
  RunResult run = HandMadeRun();
  EXPECT_EQ(DeadlineMet(run.jobs[0], run), true);
  *run.jobs[0].end += Duration{1};
  EXPECT_EQ(DeadlineMet(run.jobs[0], run), false);
}

TEST(DeadlineTest, BestEffortJobsAreHeldToNone) {
  const RunResult run = HandMadeRun();
  EXPECT_EQ(DeadlineMet(run.jobs[3], run), std::nullopt);
  EXPECT_EQ(DeadlineOf(*run.jobs[3].spec), std::nullopt);
}

TEST(DeadlineTest, JobsWithoutDeadlineAreHeldToNone) {
  const RunResult run = RunOf({{.name = "free"}});
  EXPECT_EQ(DeadlineMet(run.jobs[0], run), std::nullopt);
}

TEST(JobTimesTest, AreNoneWhereTheyDoNotApply) {
  const RunResult run = HandMadeRun();
  const JobResult& rejected = run.jobs[2];
  EXPECT_EQ(Jct(rejected, run), std::nullopt);
  EXPECT_EQ(QueueingDelay(rejected), std::nullopt);
  EXPECT_EQ(WaitingTime(rejected), std::nullopt);
  const JobResult& unfinished = run.jobs[4];
  EXPECT_EQ(Jct(unfinished, run), std::nullopt);
  EXPECT_EQ(WaitingTime(unfinished), FromSeconds(200));
}

TEST(PercentileTest, IsLinearBetweenNeighbours) {
  constexpr std::array kValues{10.0, 20.0, 40.0, 80.0};
  EXPECT_DOUBLE_EQ(Percentile(kValues, 0), 10);
  EXPECT_DOUBLE_EQ(Percentile(kValues, 0.5), 30);  // place 1.5
  EXPECT_DOUBLE_EQ(Percentile(kValues, 0.9), 68);  // place 2.7
  EXPECT_DOUBLE_EQ(Percentile(kValues, 1), 80);
}

TEST(PercentileTest, OfOneValueIsThatValue) {
  constexpr std::array kValue{3.5};
  EXPECT_DOUBLE_EQ(Percentile(kValue, 0.99), 3.5);
}

TEST(JobsPerSecondTest, NeedsAMeasuredTime) {
  RunResult run = HandMadeRun();
  EXPECT_DOUBLE_EQ(JobsPerSecond(run).value(), 10);
  run.wall_seconds = 0;
  EXPECT_FALSE(JobsPerSecond(run).has_value());
}

}  // namespace
}  // namespace trainyard::results
