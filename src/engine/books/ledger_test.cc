// SPDX-License-Identifier: Apache-2.0
#include "engine/books/ledger.h"

#include <gtest/gtest.h>

namespace trainyard::engine {
namespace {

// Work in iterations, done at a rate of 3 / s per GPU; on 7 GPUs it does not run.
class ThreePerGpu final : public ExecutionModel {
 public:
  [[nodiscard]] double TotalWork(const JobSpec& job) const override { return *job.iterations; }
  [[nodiscard]] double Rate(const JobSpec& /*job*/, int gpus) const override {
    return gpus == 7 ? 0 : 3.0 * gpus;
  }
  [[nodiscard]] std::span<const int> Levels(const JobSpec& /*job*/) const override { return {}; }
};

// One job of 600 iterations that asks for 2 GPUs, under rules of the test's choice.
class LedgerTest : public testing::Test {
 protected:
  LedgerTest() {
    job_.spec = std::make_shared<const JobSpec>(JobSpec{.gpus = 2, .iterations = 600});
  }

  void Open(double at = 0) { ledger_.Open(job_, AtSeconds(at)); }
  void Accrue(double at) { ledger_.Accrue(job_, AtSeconds(at)); }
  // A grant of so many GPUs from the last fold on.
  void Give(int gpus) {
    job_.grant.gpus = gpus;
    if (gpus > 0) {
      ledger_.Run(job_, {});
    } else {
      ledger_.Stop(job_);
    }
  }
  void Charge(double seconds) { ledger_.Charge(job_, FromSeconds(seconds)); }
  // The prediction as of the last fold.
  model::Forecast Predict(bool charge_counts = false) {
    ledger_.Predict(job_, job_.progress.as_of, charge_counts);
    return job_.forecast;
  }
  [[nodiscard]] const model::Progress& progress() const { return job_.progress; }

  model::Rules rules_;
  ThreePerGpu rates_;
  Ledger ledger_{rules_, rates_};
  model::JobRecord job_;
};

// ---------------------------------------------------------------------------------------- opening

TEST_F(LedgerTest, AJobArrivesWithAllItsWork) {
  Open(5);
  EXPECT_EQ(progress().work_left, 600);
  EXPECT_EQ(job_.total_work, 600);
  EXPECT_EQ(progress().as_of, AtSeconds(5));
  EXPECT_EQ(progress().waited, Duration{0});
}

TEST_F(LedgerTest, WholeSecondsCutTheWork) {
  rules_.quantum = model::Quantum::kSecond;
  job_.spec = std::make_shared<const JobSpec>(JobSpec{.iterations = 10.9});
  Open();
  EXPECT_EQ(progress().work_left, 10);
  EXPECT_EQ(job_.total_work, 10);
}

// ---------------------------------------------------------------------------------- true instants

// 100 iterations at 6 a second end at 16.666666...: the fraction is not lost.
TEST_F(LedgerTest, ProgressIsCountedToTheTrueInstantNotToItsMicrosecond) {
  rules_.published.true_instants = true;
  job_.spec = std::make_shared<const JobSpec>(JobSpec{.gpus = 2, .iterations = 100});
  Open();
  Give(2);  // 6 a second
  const model::Forecast end = Predict();
  EXPECT_GT(end.early, 0);
  EXPECT_NEAR(Seconds(end.done) - end.early, 100 / 6.0, 1e-12);
  ledger_.SetEarly(end.early);
  ledger_.Accrue(job_, end.done);
  EXPECT_NEAR(progress().work_left, 0, 1e-9);
  ledger_.SetEarly(0);
}

TEST_F(LedgerTest, OtherwiseEndsAreWholeMicroseconds) {
  job_.spec = std::make_shared<const JobSpec>(JobSpec{.gpus = 2, .iterations = 100});
  Open();
  Give(2);
  EXPECT_EQ(Predict().early, 0);
}

// ---------------------------------------------------------------------------------------- folding

TEST_F(LedgerTest, AWaitingJobOnlyWaits) {
  Open();
  Accrue(7);
  EXPECT_EQ(progress().waited, FromSeconds(7));
  EXPECT_EQ(progress().run_time, Duration{0});
  EXPECT_EQ(progress().work_left, 600);
}

TEST_F(LedgerTest, ARunningJobAdvancesByItsRate) {
  Open();
  Give(2);
  Accrue(10);
  EXPECT_EQ(progress().work_left, 540);
  EXPECT_EQ(progress().run_time, FromSeconds(10));
  EXPECT_EQ(progress().productive_time, FromSeconds(10));
  EXPECT_EQ(progress().gpu_micros, 20'000'000);
  EXPECT_EQ(progress().useful_gpu_micros, 20'000'000);
  EXPECT_EQ(progress().waited, Duration{0});
}

TEST_F(LedgerTest, FoldingTwiceAtOneTimeChangesNothing) {
  Open();
  Give(2);
  Accrue(10);
  Accrue(10);
  EXPECT_EQ(progress().work_left, 540);
  EXPECT_EQ(progress().run_time, FromSeconds(10));
}

TEST_F(LedgerTest, ADebtIsPaidBeforeAnyProgress) {
  Open();
  Give(2);
  Charge(4);
  Accrue(10);
  EXPECT_EQ(progress().debt, Duration{0});
  EXPECT_EQ(progress().work_left, 600 - 6 * 6);
  EXPECT_EQ(progress().run_time, FromSeconds(10));
  EXPECT_EQ(progress().productive_time, FromSeconds(6));
  EXPECT_EQ(progress().gpu_micros, 20'000'000);
  EXPECT_EQ(progress().useful_gpu_micros, 12'000'000);
}

TEST_F(LedgerTest, AnUnpaidRestIsCarriedOver) {
  Open();
  Give(2);
  Charge(4);
  Accrue(3);
  EXPECT_EQ(progress().debt, FromSeconds(1));
  EXPECT_EQ(progress().work_left, 600);
  Accrue(5);
  EXPECT_EQ(progress().debt, Duration{0});
  EXPECT_EQ(progress().work_left, 600 - 6);
}

TEST_F(LedgerTest, UnderDelayChargesAddUpAndAreNotForgotten) {
  Open();
  Give(2);
  Charge(4);
  Accrue(3);
  Charge(5);
  ledger_.CancelDebt(job_);
  EXPECT_EQ(progress().debt, FromSeconds(6));
}

TEST_F(LedgerTest, UnderIntervalAChargeReplacesTheRest) {
  rules_.debt.pay = model::Debt::Pay::kInterval;
  Open();
  Give(2);
  Charge(4);
  Accrue(3);
  Charge(5);
  EXPECT_EQ(progress().debt, FromSeconds(5));
}

TEST_F(LedgerTest, UnderIntervalTheRestIsForgotten) {
  rules_.debt.pay = model::Debt::Pay::kInterval;
  Open();
  Give(2);
  Charge(4);
  Accrue(3);
  ledger_.CancelDebt(job_);
  EXPECT_EQ(progress().debt, Duration{0});
}

TEST_F(LedgerTest, AStoppedJobOwesNothing) {
  Open();
  Give(2);
  Charge(4);
  Accrue(3);
  Give(0);
  EXPECT_EQ(progress().debt, Duration{0});
  EXPECT_EQ(progress().rate, 0);
  EXPECT_EQ(job_.forecast.done, kEndOfTime);
}

using LedgerDeathTest = LedgerTest;

TEST_F(LedgerDeathTest, TimeDoesNotGoBack) {
  Open(5);
  EXPECT_DEATH(Accrue(4), "CHECK");
}

// ------------------------------------------------------------------------------------ predictions

TEST_F(LedgerTest, TheEndIsWhenTheWorkIsDone) {
  Open();
  Give(2);
  EXPECT_EQ(Predict().done, AtSeconds(100));
  EXPECT_EQ(job_.forecast.logged, AtSeconds(100));
  Accrue(40);
  EXPECT_EQ(Predict().done, AtSeconds(100));
}

TEST_F(LedgerTest, TheEndIsTheFirstWholeMicrosecondInWhichAllIsDone) {
  job_.spec = std::make_shared<const JobSpec>(JobSpec{.iterations = 1});
  Open();
  Give(1);
  EXPECT_EQ(Predict().done, TimePoint{Duration{333'334}});
  ledger_.Accrue(job_, job_.forecast.done);
  EXPECT_LE(progress().work_left, 0);
}

TEST_F(LedgerTest, AJobThatDoesNotAdvanceNeverEnds) {
  Open();
  Give(7);
  EXPECT_EQ(Predict().done, kEndOfTime);
  EXPECT_EQ(job_.forecast.logged, kEndOfTime);
}

TEST_F(LedgerTest, ADebtDelaysThePredictedEnd) {
  Open();
  Give(2);
  Charge(4);
  EXPECT_EQ(Predict().done, AtSeconds(104));
  Accrue(3);
  EXPECT_EQ(Predict().done, AtSeconds(104));
}

TEST_F(LedgerTest, ADebtOutsideTheForecastCountsOnlyIfAskedTo) {
  rules_.published.debt_in_forecast = false;
  Open();
  Give(2);
  Charge(4);
  EXPECT_EQ(Predict().done, AtSeconds(100));
  EXPECT_EQ(Predict(true).done, AtSeconds(104));
}

// 10 iterations at 6 / s from 0.5 s on: done at 2.1666... s.
class FinishTest : public LedgerTest {
 protected:
  model::Forecast PredictWith(model::EndRule::Finish finish) {
    rules_.end.finish = finish;
    job_.spec = std::make_shared<const JobSpec>(JobSpec{.gpus = 2, .iterations = 10});
    Open(0.5);
    Give(2);
    return Predict();
  }
};

TEST_F(FinishTest, ExactRegistersTheEndItself) {
  const model::Forecast forecast = PredictWith(model::EndRule::Finish::kExact);
  EXPECT_EQ(forecast.done, TimePoint{Duration{2'166'667}});
  EXPECT_EQ(forecast.logged, forecast.done);
}

TEST_F(FinishTest, CeilSecondRegistersTheNextWholeSecond) {
  const model::Forecast forecast = PredictWith(model::EndRule::Finish::kCeilSecond);
  EXPECT_EQ(forecast.done, TimePoint{Duration{2'166'667}});
  EXPECT_EQ(forecast.logged, AtSeconds(3));
}

TEST_F(FinishTest, FloorSecondRegistersTheLastWholeSecond) {
  const model::Forecast forecast = PredictWith(model::EndRule::Finish::kFloorSecond);
  EXPECT_EQ(forecast.done, TimePoint{Duration{2'166'667}});
  EXPECT_EQ(forecast.logged, AtSeconds(2));
}

TEST_F(FinishTest, RoundEndRegistersTheRoundInWhichTheWorkIsDone) {
  rules_.clock = {.mode = model::ClockRules::Mode::kRounds, .length = FromSeconds(10)};
  const model::Forecast forecast = PredictWith(model::EndRule::Finish::kRoundEnd);
  EXPECT_EQ(forecast.done, TimePoint{Duration{2'166'667}});
  EXPECT_EQ(forecast.logged, AtSeconds(10.5));  // the round that began at 0.5
}

TEST_F(FinishTest, AWholeSecondStaysWhereItIs) {
  for (const model::EndRule::Finish finish :
       {model::EndRule::Finish::kCeilSecond, model::EndRule::Finish::kFloorSecond}) {
    rules_.end.finish = finish;
    Open();
    Give(2);
    EXPECT_EQ(Predict().logged, AtSeconds(100));
  }
}

// --------------------------------------------------------------------------------------- rollback

TEST_F(LedgerTest, WorkSinceTheLastCheckpointIsLost) {
  Open();
  Give(2);
  Accrue(70);
  ledger_.RollBack(job_, FromSeconds(30));
  EXPECT_EQ(progress().work_left, 600 - 60 * 6);
  EXPECT_EQ(progress().productive_time, FromSeconds(60));
  EXPECT_EQ(progress().useful_gpu_micros, 120'000'000);
  EXPECT_EQ(progress().run_time, FromSeconds(70));
  EXPECT_EQ(progress().gpu_micros, 140'000'000);
}

TEST_F(LedgerTest, CheckpointsCountFromTheStartOfTheAttempt) {
  Open();
  Give(2);
  Accrue(50);
  job_.productive_before_attempt = FromSeconds(45);
  ledger_.RollBack(job_, FromSeconds(30));
  EXPECT_EQ(progress().productive_time, FromSeconds(45));
  EXPECT_EQ(progress().work_left, 600 - 45 * 6);
}

TEST_F(LedgerTest, PayingADebtIsNoWorkToLose) {
  Open();
  Give(2);
  Charge(20);
  Accrue(55);
  ledger_.RollBack(job_, FromSeconds(30));  // 35 s of work, one checkpoint
  EXPECT_EQ(progress().productive_time, FromSeconds(30));
  EXPECT_EQ(progress().work_left, 600 - 30 * 6);
}

TEST_F(LedgerTest, WithoutACheckpointIntervalNothingIsLost) {
  Open();
  Give(2);
  Accrue(70);
  ledger_.RollBack(job_, Duration{0});
  EXPECT_EQ(progress().work_left, 600 - 70 * 6);
}

TEST_F(LedgerTest, NoMoreIsLostThanWasDone) {
  Open();
  Give(2);
  Accrue(20);
  ledger_.RollBack(job_, FromSeconds(30));
  EXPECT_EQ(progress().work_left, 600);
  EXPECT_EQ(progress().productive_time, Duration{0});
}

// ------------------------------------------------------------------------------------------ views

TEST_F(LedgerTest, AViewIsUpToDateAndLeavesTheRecordAlone) {
  Open();
  Give(2);
  const JobView view = ledger_.View(JobAt(4), job_, AtSeconds(10), true);
  EXPECT_EQ(view.id, JobAt(4));
  EXPECT_EQ(view.spec, job_.spec.get());
  EXPECT_EQ(view.grant, &job_.grant);
  EXPECT_EQ(view.run_time, FromSeconds(10));
  EXPECT_EQ(view.gpu_seconds, 20);
  EXPECT_EQ(view.work_left, 540);
  EXPECT_EQ(progress().run_time, Duration{0});
  EXPECT_EQ(progress().work_left, 600);
}

TEST_F(LedgerTest, TimesAreThoseOnTheRequestedGpus) {
  Open();
  Give(1);  // asks for 2
  const JobView view = ledger_.View(JobAt(0), job_, AtSeconds(100), true);
  EXPECT_EQ(view.total_time, FromSeconds(100));
  EXPECT_EQ(view.time_left, FromSeconds(50));  // 300 iterations at 6 / s
}

TEST_F(LedgerTest, ADebtIsTimeLeftWhereTheForecastHasIt) {
  Open();
  Give(2);
  Charge(4);
  EXPECT_EQ(ledger_.View(JobAt(0), job_, AtSeconds(1), true).time_left, FromSeconds(103));
  rules_.published.debt_in_forecast = false;
  EXPECT_EQ(ledger_.View(JobAt(0), job_, AtSeconds(1), true).time_left, FromSeconds(100));
}

TEST_F(LedgerTest, WorkIsShownOnlyToThoseWhoNeedIt) {
  Open();
  const JobView view = ledger_.View(JobAt(0), job_, AtSeconds(1), false);
  EXPECT_EQ(view.work_left, std::nullopt);
  EXPECT_EQ(view.time_left, std::nullopt);
  EXPECT_EQ(view.total_time, std::nullopt);
}

TEST_F(LedgerTest, AJobThatCannotRunAsRequestedHasNoTimeLeft) {
  job_.spec = std::make_shared<const JobSpec>(JobSpec{.gpus = 7, .iterations = 600});
  Open();
  const JobView view = ledger_.View(JobAt(0), job_, AtSeconds(1), true);
  EXPECT_EQ(view.work_left, 600);
  EXPECT_EQ(view.time_left, std::nullopt);
}

TEST_F(LedgerTest, AWaitingJobHasNoGrantToView) {
  Open();
  const JobView view = ledger_.View(JobAt(0), job_, AtSeconds(6), false);
  EXPECT_EQ(view.grant, nullptr);
  EXPECT_EQ(view.waited, FromSeconds(6));
}

}  // namespace
}  // namespace trainyard::engine
