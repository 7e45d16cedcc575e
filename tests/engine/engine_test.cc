// SPDX-License-Identifier: Apache-2.0
// One behaviour of the engine each, on runs of two to four jobs.
#include <gtest/gtest.h>

#include "engine_tests/harness.h"

namespace trainyard {
namespace {

TEST(EngineTest, FifoHoldsEverythingBehindAJobThatDoesNotFit) {
  const TestResult result =
      RunTest({.jobs = {MakeJob(0, 3, 100), MakeJob(1, 4, 10), MakeJob(2, 1, 10)},
               .cluster = MakeCluster(1, 4)});
  EXPECT_EQ(result.start(1), 100);
  EXPECT_EQ(result.start(2), 110);
}

TEST(EngineTest, FjfPassesOverAJobThatDoesNotFit) {
  const TestResult result =
      RunTest({.jobs = {MakeJob(0, 3, 100), MakeJob(1, 4, 10), MakeJob(2, 1, 10)},
               .cluster = MakeCluster(1, 4),
               .policy = "fjf"});
  EXPECT_EQ(result.start(1), 100);
  EXPECT_EQ(result.start(2), 2);
}

TEST(EngineTest, SjfDoesNotPreempt) {
  const TestResult result =
      RunTest({.jobs = {MakeJob(0, 1, 100), MakeJob(1, 1, 50), MakeJob(2, 1, 10)},
               .cluster = MakeCluster(1, 1),
               .policy = "sjf"});
  EXPECT_EQ(result.start(2), 100);
  EXPECT_EQ(result.start(1), 110);
  EXPECT_EQ(result.records[0].preemptions, 0U);
}

TEST(EngineTest, SrtfPreemptsTheLongestOnly) {
  const TestResult result =
      RunTest({.jobs = {MakeJob(0, 1, 100), MakeJob(0, 1, 200), MakeJob(10, 1, 50)},
               .cluster = MakeCluster(1, 2),
               .policy = "srtf"});
  EXPECT_EQ(result.start(2), 10);
  EXPECT_EQ(result.records[0].preemptions, 0U);
  EXPECT_EQ(result.records[1].preemptions, 1U);
  EXPECT_EQ(result.records[1].migrations, 0U);
}

TEST(EngineTest, EdfServesTheEarlierDeadline) {
  std::vector<JobSpec> jobs{MakeJob(0, 1, 100), MakeJob(1, 1, 10), MakeJob(2, 1, 10)};
  jobs[1].deadline = AtSeconds(500);
  jobs[2].deadline = AtSeconds(100);
  const TestResult result = RunTest({.jobs = jobs, .cluster = MakeCluster(1, 1), .policy = "edf"});
  EXPECT_EQ(result.end(2), 12);
  EXPECT_EQ(result.end(1), 21);  // ran 1 s before job 2 came
  EXPECT_EQ(result.end(0), 120);
}

TEST(EngineTest, LasTakesTurnsByTheQuantum) {
  // One GPU, two jobs of 100 s: the first has had 30 GPU-seconds at 30 s, then the other runs until
  // it is a quantum ahead, and so on: changes at 30, 90 and 150 s.
  const TestResult result = RunTest({.jobs = {MakeJob(0, 1, 100), MakeJob(1, 1, 100)},
                                     .cluster = MakeCluster(1, 1),
                                     .policy = "las:quantum=30"});
  EXPECT_EQ(result.start(1), 30);
  EXPECT_EQ(result.records[0].preemptions + result.records[1].preemptions, 3U);
}

TEST(EngineTest, TiresiasDemotesAtTheExactThreshold) {
  // 2 GPUs for 1,000 GPU-seconds: the running job leaves the first queue after 500 s.
  const TestResult result = RunTest({.jobs = {MakeJob(0, 2, 2000), MakeJob(100, 2, 100)},
                                     .cluster = MakeCluster(1, 2),
                                     .policy = "tiresias:thresholds=1000"});
  EXPECT_EQ(result.start(1), 500);
  EXPECT_EQ(result.end(0), 2100);
}

TEST(EngineTest, TiresiasPromotesAStarvingJob) {
  // Job 0 is demoted at 100 s, job 1 keeps it out; after 2 x 100 s of waiting it comes back.
  const TestRun run{.jobs = {MakeJob(0, 1, 1000), MakeJob(0, 1, 5000)},
                    .cluster = MakeCluster(1, 1),
                    .policy = "tiresias:thresholds=100/100000"};
  TestRun promoting = run;
  promoting.policy += ",promote=2";
  EXPECT_GT(RunTest(promoting).records[0].progress.run_time, Duration{0});
  EXPECT_LT(RunTest(promoting).end(1) - 0, 6001);
}

TEST(EngineTest, AJobOnAFailedNodeRestartsFromItsCheckpoint) {
  TestRun run{.jobs = {MakeJob(0, 2, 300)}, .cluster = MakeCluster(2, 2)};
  run.cluster.checkpoint_interval = FromSeconds(100);
  run.cluster.changes = {{AtSeconds(250), NodeAt(0), false}};
  const TestResult result = RunTest(run);
  // 50 s since the checkpoint at 200 are lost; it goes on at once on the other node.
  EXPECT_EQ(result.end(0), 350);
  EXPECT_EQ(result.records[0].preemptions, 1U);
  EXPECT_EQ(result.records[0].grant.gpus, 0);
}

TEST(EngineTest, AJobWaitsForANodeToReturn) {
  TestRun run{.jobs = {MakeJob(0, 2, 300)}, .cluster = MakeCluster(1, 2)};
  run.cluster.changes = {{AtSeconds(100), NodeAt(0), false}, {AtSeconds(1000), NodeAt(0), true}};
  const TestResult result = RunTest(run);
  EXPECT_EQ(result.end(0), 1200);
}

TEST(EngineTest, SaysWhyDemandClassesWait) {
  TestRun run{
      .jobs = {MakeJob(0, 3, 300), MakeJob(0, 3, 300), MakeJob(1, 8, 10), MakeJob(2, 2, 10)},
      .cluster = MakeCluster(2, 4),
      .policy = "fjf"};
  run.stop.until = AtSeconds(100);
  const TestResult result = RunTest(run);
  ASSERT_EQ(result.blocked.size(), 2U);
  EXPECT_EQ(result.blocked[0].first, JobAt(2));
  EXPECT_EQ(result.blocked[0].reason, model::WaitReason::kGpus);
  EXPECT_EQ(result.blocked[1].gpus, 2);  // two are free, but on two nodes
  EXPECT_EQ(result.blocked[1].reason, model::WaitReason::kLocality);
}

TEST(EngineTest, SaysWhoWaitsBehindABlockedHead) {
  for (const bool plain : {false, true}) {
    TestRun run{
        .jobs = {MakeJob(0, 3, 300), MakeJob(1, 8, 10), MakeJob(2, 1, 10), MakeJob(3, 2, 10)},
        .cluster = MakeCluster(1, 8),
        .policy = "fifo",
        .plain_walk = plain};
    run.stop.until = AtSeconds(100);
    const TestResult result = RunTest(run);
    ASSERT_EQ(result.blocked.size(), 3U);
    EXPECT_EQ(result.blocked[0].first, JobAt(1));
    EXPECT_EQ(result.blocked[0].reason, model::WaitReason::kGpus);
    EXPECT_EQ(result.blocked[1].first, JobAt(2));
    EXPECT_EQ(result.blocked[1].reason, model::WaitReason::kBehindHead);
    EXPECT_EQ(result.blocked[2].first, JobAt(3));
    EXPECT_EQ(result.blocked[2].reason, model::WaitReason::kBehindHead);
  }
}

TEST(EngineTest, StopsAtTheGivenTime) {
  TestRun run{.jobs = {MakeJob(0, 1, 300), MakeJob(0, 1, 50)}, .cluster = MakeCluster(1, 2)};
  run.stop.until = AtSeconds(100);
  const TestResult result = RunTest(run);
  EXPECT_EQ(result.records[0].phase.get(), model::JobPhase::kRunning);
  EXPECT_EQ(result.records[1].phase.get(), model::JobPhase::kCompleted);
  EXPECT_EQ(result.records[0].progress.gpu_micros, 100'000'000);
}

TEST(EngineTest, StopsWhenTheTrackedJobsHaveEnded) {
  TestRun run{.jobs = {MakeJob(0, 1, 300), MakeJob(0, 1, 50), MakeJob(0, 1, 60)},
              .cluster = MakeCluster(1, 3)};
  run.stop.tracked = {JobAt(1), JobAt(2)};
  const TestResult result = RunTest(run);
  EXPECT_EQ(result.records[0].phase.get(), model::JobPhase::kRunning);
  EXPECT_EQ(result.records[2].phase.get(), model::JobPhase::kCompleted);
}

// ---------------------------------------------------------------------------------------- verify

class Fixed final : public Placement {
 public:
  explicit Fixed(Slices slices) : slices_(std::move(slices)) {}
  [[nodiscard]] std::string_view name() const override { return "fixed"; }
  [[nodiscard]] std::optional<Slices> Choose(const FreeGpus& /*free*/, const JobSpec& /*job*/,
                                             const Demand& /*demand*/) const override {
    return slices_;
  }

 private:
  Slices slices_;
};

TEST(EngineTest, AnIncompleteGangIsRefused) {
  const Fixed placement(Slices{{.node = NodeAt(0), .gpus = 1}});
  const TestResult result = RunTest(
      {.jobs = {MakeJob(0, 2, 10)}, .cluster = MakeCluster(1, 4), .own_placement = &placement});
  ASSERT_FALSE(result.status.ok());
  EXPECT_EQ(result.status.error().message,
            "policy 'fifo' with placement 'fixed': job job: its gang is not complete");
}

// Asks for the same demands at every decision.
class Stubborn final : public Policy {
 public:
  explicit Stubborn(std::vector<Demand> demands) : demands_(std::move(demands)) {}
  [[nodiscard]] std::string_view name() const override { return "stubborn"; }
  [[nodiscard]] Proposal Decide(const Snapshot& /*snapshot*/, Memory* /*memory*/) const override {
    return {.demands = demands_};
  }

 private:
  std::vector<Demand> demands_;
};

std::string ErrorOf(std::vector<Demand> demands) {
  const Stubborn policy(std::move(demands));
  const TestResult result = RunTest({.jobs = {MakeJob(0, 1, 10), MakeJob(5, 1, 100)},
                                     .cluster = MakeCluster(1, 4),
                                     .own_policy = &policy});
  return result.status.ok() ? "no error" : result.status.error().message;
}

TEST(EngineTest, AProposalOfJobsThatCannotHoldGpusIsRefused) {
  EXPECT_EQ(ErrorOf({{JobAt(7), 1}}), "policy 'stubborn': there is no job 7");
  EXPECT_EQ(
      ErrorOf({{JobAt(0), 1}}),  // still demanded when it has ended
      "policy 'stubborn' with placement 'consolidated': job job: is completed and cannot hold "
      "GPUs");
}

// Plans an end for a job, whether it is there or not.
class Seer final : public Policy {
 public:
  explicit Seer(JobId job) : job_(job) {}
  [[nodiscard]] std::string_view name() const override { return "seer"; }
  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* /*memory*/) const override {
    Proposal proposal{.ends = {{.job = job_, .registered = snapshot.now + FromSeconds(10)}}};
    for (const JobId job : snapshot.jobs->live()) {
      proposal.demands.push_back({.job = job, .gpus = 1});
    }
    return proposal;
  }

 private:
  JobId job_;
};

TEST(EngineTest, AnEndOfAJobThatIsNotThereIsRefused) {
  const auto error_of = [](JobId job) {
    const Seer policy(job);
    const TestResult result = RunTest({.jobs = {MakeJob(0, 1, 10), MakeJob(50, 1, 100)},
                                       .cluster = MakeCluster(1, 4),
                                       .own_policy = &policy});
    return result.status.ok() ? "no error" : result.status.error().message;
  };
  EXPECT_EQ(error_of(JobAt(7)), "policy 'seer': there is no job 7");
  EXPECT_EQ(error_of(JobAt(0)),
            "policy 'seer' with placement 'consolidated': job job: is completed and cannot be "
            "given an end");
}

TEST(EngineTest, AProposalThatNamesAJobTwiceIsRefused) {
  EXPECT_EQ(
      ErrorOf({{JobAt(0), 1}, {JobAt(0), 1}}),
      "policy 'stubborn' with placement 'consolidated': job job: is named twice in a proposal");
}

// What an engine needs that is told its facts one by one; must outlive it.
struct Fifo {
  [[nodiscard]] engine::EngineSetup On(Cluster cluster) const {
    return {.configuration = engine::Share({.rules = FreeRules(),
                                            .cluster = std::move(cluster),
                                            .bundle = {.ordering = policy.ordering.get(),
                                                       .placement = placement.placement.get(),
                                                       .admission = admission.get()},
                                            .rates = rates.get()})};
  }
  Components policy = PolicyNamed("fifo");
  Components placement = PlacementNamed("consolidated");
  std::unique_ptr<Admission> admission = AdmitAll();
  std::unique_ptr<ExecutionModel> rates = profile::MakeDurationModel();
};

TEST(EngineTest, ACancelledJobMakesRoom) {
  const Fifo fifo;
  engine::Engine engine(fifo.On(MakeCluster(1, 1)));
  model::Batch batch;
  for (std::size_t i = 0; i < 3; ++i) {
    batch.events.push_back(
        {.fact = model::fact::Submitted{
             .job = JobAt(i), .spec = std::make_shared<const JobSpec>(MakeJob(0, 1, 100))}});
  }
  ASSERT_TRUE(engine.Step(batch).ok());
  const TimePoint later = AtSeconds(40);
  ASSERT_TRUE(
      engine
          .Step({.now = later,
                 .events = {{.at = later, .fact = model::fact::Cancelled{.job = JobAt(0)}},
                            {.at = later, .fact = model::fact::Cancelled{.job = JobAt(1)}}}})
          .ok());
  EXPECT_EQ(engine.records()[0].phase.get(), model::JobPhase::kCancelled);
  EXPECT_EQ(engine.records()[0].preemptions, 0U);
  EXPECT_EQ(engine.records()[0].progress.gpu_micros, 40'000'000);
  EXPECT_EQ(engine.records()[1].phase.get(), model::JobPhase::kCancelled);
  EXPECT_EQ(engine.records()[2].first_start, later);
  EXPECT_EQ(engine.next_end(), AtSeconds(140));
}

// A controller that could not write for a while learns late, and of all at once.
TEST(EngineTest, AJobThatHasLostItsGpusPastItsTimeLimitIsEnded) {
  const Fifo fifo;
  engine::Engine engine(fifo.On(MakeCluster(2, 1)));
  const auto limited = [](double seconds) {
    JobTraits traits;
    traits.time_limit = FromSeconds(seconds);
    JobSpec job = MakeJob(0, 1, 500);
    job.traits = std::make_shared<const JobTraits>(traits);
    return std::make_shared<const JobSpec>(job);
  };
  const auto step = [&engine](double seconds, std::vector<model::Event> events) {
    for (model::Event& event : events) {
      event.at = AtSeconds(seconds);
    }
    ASSERT_TRUE(engine.Step({.now = AtSeconds(seconds), .events = std::move(events)}).ok());
  };
  step(0, {{.fact = model::fact::Submitted{.job = JobAt(0), .spec = limited(60)}},
           {.fact = model::fact::Submitted{.job = JobAt(1), .spec = limited(200)}}});
  step(90, {{.fact = model::fact::NodeDown{.node = NodeAt(0)}},
            {.fact = model::fact::NodeDown{.node = NodeAt(1)}}});
  EXPECT_EQ(engine.records()[0].phase.get(), model::JobPhase::kFailed);
  EXPECT_EQ(engine.records()[0].progress.run_time, FromSeconds(90));
  EXPECT_EQ(engine.records()[1].phase.get(), model::JobPhase::kWaiting);
  EXPECT_EQ(engine.next_wakeup(), std::nullopt) << "the other one does not run";
  step(100, {{.fact = model::fact::Updated{.job = JobAt(1), .spec = limited(90)}}});
  EXPECT_EQ(engine.records()[1].phase.get(), model::JobPhase::kFailed);
}

// Runs everybody, and writes down what the jobs have reported.
class Listening final : public Policy {
 public:
  explicit Listening(std::vector<std::vector<Metric>>& heard) : heard_(heard) {}
  [[nodiscard]] std::string_view name() const override { return "listening"; }
  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* /*memory*/) const override {
    Proposal proposal;
    for (const JobId job : snapshot.jobs->live()) {
      const JobView view = snapshot.jobs->at(job);
      heard_.emplace_back(view.reported.begin(), view.reported.end());
      proposal.demands.push_back({.job = job, .gpus = 1});
    }
    return proposal;
  }

 private:
  std::vector<std::vector<Metric>>& heard_;
};

class ReportedMetricsTest : public testing::Test {
 protected:
  void Submit(std::size_t job, double at) {
    Step(at,
         {{.at = AtSeconds(at),
           .fact = model::fact::Submitted{
               .job = JobAt(job), .spec = std::make_shared<const JobSpec>(MakeJob(at, 1, 100))}}});
  }
  void Report(std::size_t job, double at, std::vector<Metric> metrics) {
    Step(at, {{.at = AtSeconds(at),
               .fact = model::fact::Reported{.job = JobAt(job), .metrics = std::move(metrics)}}});
  }
  void Step(double at, std::vector<model::Event> events) {
    ASSERT_TRUE(engine_.Step({.now = AtSeconds(at), .events = std::move(events)}).ok());
  }

  std::vector<std::vector<Metric>> heard_;  // one for each job of each decision
  Listening policy_{heard_};
  Components placement_ = PlacementNamed("consolidated");
  std::unique_ptr<Admission> admission_ = AdmitAll();
  std::unique_ptr<ExecutionModel> rates_ = profile::MakeDurationModel();
  engine::Engine engine_{
      {.configuration = engine::Share({.rules = FreeRules(),
                                       .cluster = MakeCluster(1, 4),
                                       .bundle = {.policy = &policy_,
                                                  .placement = placement_.placement.get(),
                                                  .admission = admission_.get()},
                                       .rates = rates_.get()})}};
};

class PausedTest : public ReportedMetricsTest {
 protected:
  void Pause(double at, bool paused) {
    Step(at, {{.at = AtSeconds(at), .fact = model::fact::Switched{.paused = paused}}});
  }
  [[nodiscard]] model::JobPhase PhaseOf(std::size_t job) const {
    return engine_.records()[job].phase.get();
  }
};

TEST_F(PausedTest, FactsAreTakenAndDecidedTogetherAfterwards) {
  Submit(0, 0);
  Pause(1, true);
  EXPECT_EQ(engine_.decisions(), 1);
  Submit(1, 2);
  Submit(2, 3);
  Step(4, {{.at = AtSeconds(4), .fact = model::fact::Cancelled{.job = JobAt(2)}}});
  EXPECT_EQ(engine_.decisions(), 1);
  EXPECT_FALSE(engine_.next_wakeup().has_value());
  EXPECT_EQ(PhaseOf(0), model::JobPhase::kRunning);
  EXPECT_EQ(PhaseOf(1), model::JobPhase::kArrived);
  Step(100, engine_.TakeEnds(AtSeconds(100)));
  EXPECT_EQ(PhaseOf(0), model::JobPhase::kCompleted);
  EXPECT_TRUE(engine_.Fork()->is_paused());
  Pause(101, true);
  EXPECT_EQ(engine_.decisions(), 1) << "it was so already";
  Pause(102, false);
  EXPECT_EQ(engine_.decisions(), 2) << "one for all";
  EXPECT_EQ(PhaseOf(1), model::JobPhase::kRunning);
  Pause(103, false);
  EXPECT_EQ(engine_.decisions(), 2) << "no cause to decide";
}

TEST_F(ReportedMetricsTest, PoliciesSeeTheLatestValueOfEachName) {
  Submit(0, 0);
  ASSERT_EQ(heard_.size(), 1U);
  EXPECT_TRUE(heard_[0].empty());
  Report(0, 1, {{"loss", 2.5}, {"accuracy", 0.1}});
  Report(0, 2, {{"loss", 1.5}});
  EXPECT_EQ(engine_.decisions(), 1) << "a report is no cause to decide";
  heard_.clear();
  Submit(1, 3);
  ASSERT_EQ(heard_.size(), 2U);
  EXPECT_EQ(heard_[0], (std::vector<Metric>{{"accuracy", 0.1}, {"loss", 1.5}}));
  EXPECT_TRUE(heard_[1].empty());
}

TEST_F(ReportedMetricsTest, NamesBeyondTheLimitAreIgnoredAndKnownOnesAreNot) {
  Submit(0, 0);
  for (int i = 0; i < 50; ++i) {
    Report(0, 1, {{std::to_string(10 + i), 1}});
  }
  Report(0, 2, {{"10", 7}, {"99", 7}});
  const std::vector<Metric>& reported = engine_.records()[0].reported;
  ASSERT_EQ(reported.size(), kMaxMetrics);
  EXPECT_EQ(reported.front(), (Metric{"10", 7}));
  EXPECT_EQ(reported.back(), (Metric{"41", 1}));
}

TEST_F(ReportedMetricsTest, AForkKeepsThemAndAJobThatHasEndedSaysNothing) {
  Submit(0, 0);
  Report(0, 1, {{"loss", 2}});
  const std::unique_ptr<engine::Engine> fork = engine_.Fork();
  EXPECT_EQ(fork->records()[0].reported, (std::vector<Metric>{{"loss", 2}}));
  Step(2, {{.at = AtSeconds(2), .fact = model::fact::Cancelled{.job = JobAt(0)}}});
  Report(0, 3, {{"loss", 1}});
  EXPECT_EQ(engine_.records()[0].reported, (std::vector<Metric>{{"loss", 2}}));
}

TEST(EngineDeathTest, AGpuThatIsTakenCannotBeChosen) {
  const Fixed placement(Slices{{.node = NodeAt(0), .gpus = 1}});
  EXPECT_DEATH((void)RunTest({.jobs = {MakeJob(0, 1, 10), MakeJob(0, 1, 10)},
                              .cluster = MakeCluster(1, 4),
                              .own_placement = &placement}),
               "CHECK");
}

// Runs everybody; grants credit at the start, and at 20 a restart.
class Crediting final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const override { return "crediting"; }
  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* /*memory*/) const override {
    Proposal proposal;
    for (const JobId job : snapshot.jobs->live()) {
      const bool restart = snapshot.now == AtSeconds(20);
      proposal.demands.push_back(
          {.job = job, .gpus = 1, .restart = restart, .credit = FromSeconds(restart ? 0 : 30)});
    }
    if (snapshot.now < AtSeconds(20)) {
      proposal.wake_at = AtSeconds(20);
    }
    return proposal;
  }
};

TEST(EngineTest, CreditedProgressShortensAJob) {
  const Crediting policy;
  const TestResult result = RunTest({.jobs = {MakeJob(0, 1, 100), MakeJob(0, 1, 200)},
                                     .cluster = MakeCluster(1, 2),
                                     .own_policy = &policy});
  EXPECT_EQ(result.end(0), 70);
  EXPECT_EQ(result.end(1), 170);
  EXPECT_EQ(result.records[0].preemptions, 1);  // the restart
}

// Runs its job on one node, and from 20 on on the other one.
class MovingOnce final : public Policy {
 public:
  explicit MovingOnce(bool anew) : anew_(anew) {}
  [[nodiscard]] std::string_view name() const override { return "moving-once"; }
  [[nodiscard]] PolicyTraits traits() const override { return {.may = {.name_gpus = true}}; }
  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* /*memory*/) const override {
    const bool later = snapshot.now >= AtSeconds(20);
    Proposal proposal;
    for (const JobId job : snapshot.jobs->live()) {
      proposal.demands.push_back({.job = job,
                                  .gpus = 1,
                                  .slices = {{.node = NodeAt(later ? 1 : 0), .gpus = 1}},
                                  .restart = anew_ && snapshot.now == AtSeconds(20)});
    }
    if (!later) {
      proposal.wake_at = AtSeconds(20);
    }
    return proposal;
  }

 private:
  const bool anew_;
};

TEST(EngineTest, WhoIsToBeginAnewElsewherePaysARestart) {
  for (const bool anew : {false, true}) {
    const MovingOnce policy(anew);
    TestRun run{.jobs = {MakeJob(0, 1, 100)},
                .cluster = MakeCluster(2, 1),
                .own_policy = &policy,
                .placement = "gandiva"};
    run.rules.debt.charge = model::Debt::Charge::kChange;
    run.overheads = profile::OverheadModel(profile::OverheadTable{
        .fallback = {.restart = FromSeconds(7), .migrate = FromSeconds(2)}, .models = {}});
    const TestResult result = RunTest(run);
    ASSERT_TRUE(result.status.ok()) << result.status.error().message;
    EXPECT_EQ(result.end(0), anew ? 107 : 102);
    EXPECT_EQ(result.records[0].preemptions, anew ? 1U : 0U);
    EXPECT_EQ(result.records[0].migrations, anew ? 0U : 1U);
  }
}

TEST(ReplayTest, ADamagedJournalIsRefused) {
  const TestRun run{.jobs = {MakeJob(0, 1, 10)}, .cluster = MakeCluster(1, 1)};
  std::string journal = RunTest(run).journal;
  journal.resize(journal.size() / 2);
  EXPECT_FALSE(RunTest(run, &journal).status.ok());
}

TEST(ReplayTest, AnotherPolicyIsNoticed) {
  TestRun run{.jobs = RandomJobs(1, 50), .cluster = MakeCluster(1, 8)};
  const std::string journal = RunTest(run).journal;
  run.policy = "srtf";
  const TestResult replay = RunTest(run, &journal);
  ASSERT_FALSE(replay.status.ok());
  EXPECT_NE(replay.status.error().message.find("differs from the journal"), std::string::npos);
}

}  // namespace
}  // namespace trainyard
