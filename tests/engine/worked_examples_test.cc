// SPDX-License-Identifier: Apache-2.0
// The worked examples by which the engine's concepts were checked against the published programs
// (ElasticFlow, Muri, Blox): instants, debts and the three times of an end, by hand.
#include <gtest/gtest.h>

#include <array>

#include <map>

#include "engine_tests/harness.h"

namespace trainyard {
namespace {

// Throughput by GPU count; solo rate on the requested GPUs for jobs that name a model.
class Scaling final : public ExecutionModel {
 public:
  explicit Scaling(std::map<int, double> rates) : rates_(std::move(rates)) {
    for (const auto& [gpus, rate] : rates_) {
      levels_.push_back(gpus);
    }
  }
  [[nodiscard]] double TotalWork(const JobSpec& job) const override { return *job.iterations; }
  [[nodiscard]] double Rate(const JobSpec& /*job*/, int gpus) const override {
    return rates_.at(gpus);
  }
  [[nodiscard]] std::span<const int> Levels(const JobSpec& /*job*/) const override {
    return levels_;
  }

 private:
  std::map<int, double> rates_;
  std::vector<int> levels_;
};

// Proposes fixed GPU counts, one row per decision instant (seconds, GPUs of each job).
class Scripted final : public Policy {
 public:
  struct Row {
    double at;
    std::vector<int> gpus;
    std::optional<double> work_left;  // of the first job with GPUs before, checked if given
  };
  explicit Scripted(std::vector<Row> rows) : rows_(std::move(rows)) {}
  [[nodiscard]] std::string_view name() const override { return "scripted"; }
  [[nodiscard]] PolicyTraits traits() const override {
    return {.needs = {.work_left = true}, .may = {.resize = true}};
  }
  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* /*memory*/) const override {
    Proposal proposal;
    for (const Row& row : rows_) {
      if (AtSeconds(row.at) != snapshot.now) {
        continue;
      }
      for (const JobId job : snapshot.jobs->live()) {
        if (Index(job) == 0 && row.work_left) {
          EXPECT_NEAR(*snapshot.jobs->at(job).work_left, *row.work_left, 1e-9) << row.at;
        }
        if (const int gpus = row.gpus[Index(job)]; gpus > 0) {
          proposal.demands.push_back({job, gpus});
        }
      }
      return proposal;
    }
    ADD_FAILURE() << "no decision was expected at " << Seconds(snapshot.now);
    return proposal;
  }

 private:
  std::vector<Row> rows_;
};

JobSpec Iterations(double submit, double iterations) {
  return {.name = "job", .gpus = 1, .submit = AtSeconds(submit), .iterations = iterations};
}

// The same cost for every change.
profile::OverheadModel Always(double seconds) {
  const Duration cost = FromSeconds(seconds);
  return profile::OverheadModel(profile::OverheadTable{
      .fallback = {.start = cost, .restart = cost, .resize = cost, .migrate = cost}, .models = {}});
}

// ElasticFlow: 1 node x 4 GPUs, slot 60, 1 / 1.8 / 3 iterations/s. Every job with GPUs owes a cost
// at each instant, paid in the interval that follows; ends are whole seconds. (The published
// example takes its costs from a cache of GPU ranges; here each costs 8 s.)
TEST(WorkedExampleTest, ElasticFlowCoalescesAndPays) {
  const Scaling rates(std::map<int, double>{{1, 1}, {2, 1.8}, {4, 3}});
  // J0 runs alone on 4 GPUs from 0; J1 of t = 10 is decided at 0 + 60; J0 then has 2 GPUs.
  const Scripted policy({{.at = 0, .gpus = {4, 0}, .work_left = 600},
                         {.at = 60, .gpus = {2, 2}, .work_left = 600 - (60 - 8) * 3.0},
                         {.at = 172, .gpus = {4, 0}, .work_left = 444 - (172 - 60 - 8) * 1.8},
                         {.at = 258, .gpus = {0, 0}}});
  model::Rules rules;
  rules.clock = {.mode = model::ClockRules::Mode::kSpacing, .length = FromSeconds(60)};
  rules.debt = {.charge = model::Debt::Charge::kEveryInstant, .pay = model::Debt::Pay::kInterval};
  rules.end = {.finish = model::EndRule::Finish::kCeilSecond, .release_at_instant = true};
  rules.published = {.lone_fact = model::PublishedRules::LoneFact::kStarted,
                     .every_instant = true,
                     .debt_in_forecast = false};
  const TestResult result = RunTest({.jobs = {Iterations(0, 600), Iterations(10, 200)},
                                     .cluster = MakeCluster(1, 4),
                                     .rules = rules,
                                     .own_policy = &policy,
                                     .overheads = Always(8),
                                     .rates = &rates});
  ASSERT_TRUE(result.status.ok()) << result.status.error().message;
  // J1: 60 + ceil(200 / 1.8) = 172; its unpaid debt of 8 s is not in the forecast.
  EXPECT_NEAR(result.end(1), 60 + 200 / 1.8, 1e-5);
  EXPECT_EQ(result.logged(1), 172);
  // J0: 256.8 iterations left at 172: 172 + 85.6.
  EXPECT_EQ(result.end(0), 257.6);
  EXPECT_EQ(result.logged(0), 258);
}

// Muri's AntMan, reference 3 and 7: ends that lie close together are at that of the job that comes
// first in the order of the jobs, even if it is not the earliest.
TEST(WorkedExampleTest, CloseEndsJoinTheEndOfTheFirstJob) {
  model::Rules rules = FreeRules();
  rules.published.join_relative = 1e-9;  // a millisecond here
  TestRun run{.jobs = {MakeJob(0, 1, 1'000'000.0005), MakeJob(0, 1, 1'000'000)},
              .cluster = MakeCluster(1, 2),
              .rules = rules};
  const auto ends = [&run] {
    const TestResult result = RunTest(run);
    return std::pair(result.logged(0), result.logged(1));
  };
  EXPECT_EQ(ends(), std::pair(1'000'000.0, 1'000'000.0));
  run.rules.published.join_by_priority = true;
  EXPECT_EQ(ends(), std::pair(1'000'000.0005, 1'000'000.0005));
  run.jobs[0].priority = 1;
  EXPECT_EQ(ends(), std::pair(1'000'000.0, 1'000'000.0));
  run.jobs[0] = MakeJob(0, 1, 1'000'000.002);  // not close enough
  EXPECT_EQ(ends(), std::pair(1'000'000.002, 1'000'000.0));
}

TEST(WorkedExampleTest, ALoneRemainingFactIsNotDelayed) {
  model::Rules rules = FreeRules();
  rules.clock = {.mode = model::ClockRules::Mode::kSpacing, .length = FromSeconds(60)};
  rules.end = {.finish = model::EndRule::Finish::kCeilSecond, .release_at_instant = true};
  rules.published = {.lone_fact = model::PublishedRules::LoneFact::kStarted, .every_instant = true};
  TestRun run{
      .jobs = {MakeJob(0, 1, 30), MakeJob(0, 1, 40)}, .cluster = MakeCluster(1, 1), .rules = rules};
  // The first end is the only fact left (the second job has not started): decided at 30, not 60.
  TestResult result = RunTest(run);
  EXPECT_EQ(result.start(1), 30);
  // With a third job still to come it is not alone, and waits for the spacing.
  run.jobs.push_back(MakeJob(500, 1, 1));
  EXPECT_EQ(RunTest(run).start(1), 60);
  // Without the exception it always waits.
  run.jobs.pop_back();
  run.rules.published.lone_fact = model::PublishedRules::LoneFact::kDelayed;
  EXPECT_EQ(RunTest(run).start(1), 60);
}

// ElasticFlow's dlas-gpu: a lone submit is decided at once, while an end of the same time still
// waits for the spacing. The instant in between finds the start charge unpaid and moves that end.
TEST(WorkedExampleTest, AnEndThatWaitsIsPredictedAnewByAnInstantInBetween) {
  model::Rules rules;
  rules.clock = {.mode = model::ClockRules::Mode::kSpacing, .length = FromSeconds(240)};
  rules.debt = {.charge = model::Debt::Charge::kStart, .pay = model::Debt::Pay::kInterval};
  rules.published = {.lone_fact = model::PublishedRules::LoneFact::kSubmits,
                     .every_instant = true,
                     .debt_in_forecast = false};
  rules.end = {.finish = model::EndRule::Finish::kFloorSecond, .release_at_instant = true};
  const TestResult result = RunTest({.jobs = {MakeJob(1060, 1, 54), MakeJob(1120, 1, 19)},
                                     .cluster = MakeCluster(1, 4),
                                     .rules = rules,
                                     .overheads = Always(9)});
  EXPECT_EQ(result.start(1), 1120);
  EXPECT_EQ(result.logged(0), 1123);  // 60 s less 9 s done at 1120, 3 s left; without it 1114
}

// Muri: every running job owes its model's cost at every event; what an interval cannot pay is
// forgotten; the cost is not in the prediction.
TEST(WorkedExampleTest, MuriChargesEveryEvent) {
  class Solo final : public ExecutionModel {
   public:
    [[nodiscard]] double TotalWork(const JobSpec& job) const override { return *job.iterations; }
    [[nodiscard]] double Rate(const JobSpec& job, int /*gpus*/) const override {
      return job.model == "bert" ? 1 / 0.18067 : job.model == "dqn" ? 1 / 0.49735 : 1 / 0.108605;
    }
    [[nodiscard]] std::span<const int> Levels(const JobSpec& /*job*/) const override { return {}; }
  };
  const Solo rates;
  profile::OverheadTable table;
  for (const auto& [model, cost] :
       {std::pair{"bert", 10}, std::pair{"dqn", 5}, std::pair{"vgg16", 7}}) {
    const Duration d = FromSeconds(cost);
    table.models[model] = {.start = d, .restart = d, .resize = d, .migrate = d};
  }
  model::Rules rules;
  rules.debt = {.charge = model::Debt::Charge::kEveryInstant, .pay = model::Debt::Pay::kInterval};
  rules.published = {.every_instant = true, .debt_in_forecast = false};
  std::vector<JobSpec> jobs{Iterations(0, 1000), Iterations(100, 400), Iterations(104, 1000)};
  jobs[0].model = "bert";
  jobs[1].model = "dqn";
  jobs[2].model = "vgg16";
  const TestResult result = RunTest({.jobs = jobs,
                                     .cluster = MakeCluster(1, 1),
                                     .rules = rules,
                                     .policy = "srtf",
                                     .placement = "count",
                                     .overheads = profile::OverheadModel(table),
                                     .rates = &rates});
  EXPECT_NEAR(result.end(0), 194.67, 1e-5);
  EXPECT_NEAR(result.end(2), 303.275, 1e-5);
  EXPECT_NEAR(result.end(1), 502.215, 1e-5);
}

// Blox: rounds of 300 s; a job starts at a round, and its GPU is free at the round in which its
// work is done.
TEST(WorkedExampleTest, BloxActsInRounds) {
  model::Rules rules = FreeRules();
  rules.clock = {
      .mode = model::ClockRules::Mode::kRounds, .length = FromSeconds(300), .anchor = TimePoint{}};
  rules.end.finish = model::EndRule::Finish::kRoundEnd;
  const TestResult result = RunTest({.jobs = {MakeJob(10, 1, 700), MakeJob(320, 1, 500)},
                                     .cluster = MakeCluster(1, 1),
                                     .rules = rules});
  EXPECT_EQ(result.start(0), 300);
  EXPECT_EQ(result.logged(0), 1200);
  EXPECT_EQ(result.end(0), 1000);  // exactly
  EXPECT_EQ(result.start(1), 1200);
  EXPECT_EQ(result.logged(1), 1800);
}

// Sound mode: the cost is paid once at the start and before any progress; a restart pays again.
TEST(WorkedExampleTest, SoundModeChargesARealChangeOnly) {
  model::Rules rules;
  const profile::OverheadTable table{
      .fallback = {.start = FromSeconds(2), .restart = FromSeconds(5)}, .models = {}};
  const TestResult result = RunTest({.jobs = {MakeJob(0, 1, 100), MakeJob(50, 1, 10)},
                                     .cluster = MakeCluster(1, 1),
                                     .rules = rules,
                                     .policy = "srtf",
                                     .overheads = profile::OverheadModel(table)});
  // The short job takes over at 50 and ends at 50 + 2 + 10; the long one has 100 - 48 left and pays
  // 5 to come back.
  EXPECT_EQ(result.end(1), 62);
  EXPECT_EQ(result.end(0), 62 + 5 + 52);
  EXPECT_EQ(result.records[0].preemptions, 1U);
  EXPECT_EQ(result.records[0].progress.gpu_micros, 107'000'000);
  EXPECT_EQ(result.records[0].progress.useful_gpu_micros, 100'000'000);
}

// 5.1 with the policy itself: three jobs on 4 GPUs that advance 1, 1.8 and 3 per second.
TEST(WorkedExampleTest, ElasticFlowItself) {
  class Rates final : public ExecutionModel {
   public:
    [[nodiscard]] double TotalWork(const JobSpec& job) const override { return *job.iterations; }
    [[nodiscard]] double Rate(const JobSpec& /*job*/, int gpus) const override {
      return gpus == 1 ? 1 : gpus == 2 ? 1.8 : gpus == 4 ? 3 : 0;
    }
    [[nodiscard]] std::span<const int> Levels(const JobSpec& /*job*/) const override {
      static constexpr std::array kLevels{1, 2, 4};
      return kLevels;
    }
  } rates;
  const auto job = [](double submit, double iterations, double deadline) {
    return JobSpec{.name = "job",
                   .submit = AtSeconds(submit),
                   .iterations = iterations,
                   .deadline = AtSeconds(deadline)};
  };
  TestRun run{
      .jobs = {job(0, 600, 420), job(10, 200, 300), job(130, 300, 260)},
      .cluster = MakeCluster(1, 4),
      .policy = "elasticflow-published:slot=60,admit=batch,marginal=increase",
      .placement = "buddy-groups",
      .admission = "deadline",
      .walk = Walk{.keep_running = false},
      .overheads = profile::OverheadModel(profile::OverheadFormula{.base = 2, .per_doubling = 2}),
      .rates = &rates};
  run.rules = {
      .clock = {.mode = model::ClockRules::Mode::kSpacing, .length = std::chrono::seconds(60)},
      .debt = {.charge = model::Debt::Charge::kEveryInstant, .pay = model::Debt::Pay::kInterval},
      .end = {.source = model::EndRule::Source::kPlanned, .release_at_instant = true},
      .published = {.lone_fact = model::PublishedRules::LoneFact::kStarted,
                    .every_instant = true,
                    .warm_sets = true}};
  const TestResult result = RunTest(run);
  ASSERT_TRUE(result.status.ok()) << result.status.error().message;
  EXPECT_EQ(result.logged(2), 252);
  EXPECT_EQ(result.end(2), 230);
  EXPECT_EQ(result.logged(1), 314);
  EXPECT_EQ(result.end(1), 300);
  EXPECT_EQ(result.logged(0), 436);
  EXPECT_EQ(result.end(0), 388);
  EXPECT_EQ(result.decisions, 6);  // 0, 60, 130, 252, 314, 436
}

}  // namespace
}  // namespace trainyard
