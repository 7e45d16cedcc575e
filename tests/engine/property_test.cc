// SPDX-License-Identifier: Apache-2.0
// What must hold for every policy on random traces.
#include <gtest/gtest.h>

#include "engine_tests/harness.h"
#include "support/sanitized.h"

namespace trainyard {
namespace {

struct Combination {
  std::string policy;
  std::string placement;
};

void PrintTo(const Combination& one, std::ostream* out) {
  *out << one.policy << " on " << one.placement;
}

std::string ShownName(const testing::TestParamInfo<Combination>& info) {
  std::string name = info.param.policy + "_" + info.param.placement;
  for (char& c : name) {
    c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  return name;
}

class EveryPolicy : public testing::TestWithParam<Combination> {
 protected:
  static TestRun Run(unsigned seed) {
    TestRun run{.jobs = RandomJobs(seed, 150),
                .cluster = MakeCluster(4, 4),
                .policy = GetParam().policy,
                .placement = GetParam().placement};
    run.rules.debt = {};
    run.overheads = SecondsOfOverhead();
    return run;
  }
};

TEST_P(EveryPolicy, AllJobsFinishWithExactlyTheirWork) {
  const TestResult result = RunTest(Run(1));
  ASSERT_TRUE(result.status.ok()) << result.status.error().message;
  for (const model::JobRecord& job : result.records) {
    ASSERT_EQ(job.phase.get(), model::JobPhase::kCompleted);
    const std::int64_t work = job.spec->duration->count() * job.spec->gpus;
    EXPECT_NEAR(static_cast<double>(job.progress.useful_gpu_micros), static_cast<double>(work), 64);
    EXPECT_GE(job.progress.gpu_micros, job.progress.useful_gpu_micros);
    EXPECT_EQ(job.progress.run_time + job.progress.waited, job.done - job.spec->submit);
  }
}

TEST_P(EveryPolicy, ASecondRunHasTheSameDigest) {
  EXPECT_EQ(RunTest(Run(2)).digest, RunTest(Run(2)).digest);
  EXPECT_NE(RunTest(Run(2)).digest, RunTest(Run(3)).digest);
}

TEST_P(EveryPolicy, AReplayOfTheJournalDoesTheSame) {
  const TestRun run = Run(4);
  const TestResult original = RunTest(run);
  const TestResult replay = RunTest(run, &original.journal);
  ASSERT_TRUE(replay.status.ok()) << replay.status.error().message;
  EXPECT_EQ(original.digest, replay.digest);
  EXPECT_EQ(original.decisions, replay.decisions);
}

// The actions, applied one after the other to empty hands, give what the engine says it granted.
TEST_P(EveryPolicy, ActionsAddUpToThePlan) {
  const TestRun run = Run(5);
  const Components policy = PolicyNamed(run.policy);
  const Components placement = PlacementNamed(run.placement);
  const std::unique_ptr<Admission> admission = AdmitAll();
  const std::unique_ptr<ExecutionModel> rates = profile::MakeDurationModel();
  engine::Engine engine(
      {.configuration = engine::Share({.rules = run.rules,
                                       .cluster = run.cluster,
                                       .bundle = {.ordering = policy.ordering.get(),
                                                  .policy = policy.policy.get(),
                                                  .placement = placement.placement.get(),
                                                  .packer = placement.packer.get(),
                                                  .admission = admission.get()},
                                       .rates = rates.get(),
                                       .overheads = run.overheads})});
  world::SimulatedWorld world(std::make_shared<const std::vector<JobSpec>>(run.jobs), run.cluster,
                              engine);
  std::vector<Grant> held(run.jobs.size());
  for (model::Batch batch = world.Next(engine.next_wakeup()); !batch.done;
       batch = world.Next(engine.next_wakeup())) {
    const Result<std::span<const model::Action>> actions = engine.Step(batch);
    ASSERT_TRUE(actions.ok()) << actions.error().message;
    for (const model::Action& action : actions.value()) {
      Grant& grant = held[Index(action.job)];
      switch (action.kind) {
        case model::ActionKind::kLaunch:
          EXPECT_EQ(grant.gpus, 0);
          grant = action.grant;
          break;
        case model::ActionKind::kResize:
        case model::ActionKind::kMigrate:
          EXPECT_GT(grant.gpus, 0);
          grant = action.grant;
          break;
        case model::ActionKind::kPreempt:
        case model::ActionKind::kRelease:
          EXPECT_GT(grant.gpus, 0);
          grant = {};
          break;
        case model::ActionKind::kTune:
        case model::ActionKind::kPace:
        case model::ActionKind::kAdmit:
        case model::ActionKind::kReject:
          break;
      }
    }
    for (std::size_t i = 0; i < engine.records().size(); ++i) {
      ASSERT_EQ(held[i], engine.records()[i].grant) << "job " << i << " at " << Seconds(batch.now);
    }
  }
}

TEST_P(EveryPolicy, NoMoreIsGrantedThanThereIs) {
  const TestResult result = RunTest(Run(6));
  for (const engine::DecisionSample& sample : result.samples) {
    EXPECT_LE(sample.gpus_used, 16);
  }
}

TEST_P(EveryPolicy, SurvivesNodeFailures) {
  if (GetParam().placement == "count") {
    return;  // names no GPUs: such a run is refused (scenario_test.cc)
  }
  TestRun run = Run(7);
  run.cluster.checkpoint_interval = FromSeconds(60);
  for (int i = 0; i < 40; ++i) {
    const double at = 50.0 + 70 * i;
    run.cluster.changes.push_back({AtSeconds(at), NodeAt(static_cast<std::size_t>(i % 4)), false});
    run.cluster.changes.push_back(
        {AtSeconds(at + 65), NodeAt(static_cast<std::size_t>(i % 4)), true});
  }
  const TestResult result = RunTest(run);
  ASSERT_TRUE(result.status.ok()) << result.status.error().message;
  std::uint32_t preemptions = 0;
  for (const model::JobRecord& job : result.records) {
    EXPECT_EQ(job.phase.get(), model::JobPhase::kCompleted);
    preemptions += job.preemptions;
  }
  EXPECT_GT(preemptions, 0U);
}

INSTANTIATE_TEST_SUITE_P(
    Catalogue, EveryPolicy,
    testing::Values(Combination{"fifo", "consolidated"}, Combination{"fjf", "first-fit"},
                    Combination{"backfill", "consolidated"}, Combination{"backfill", "count"},
                    Combination{"backfill:reservations=7", "consolidated"},
                    Combination{"backfill:reservations=3,order=shortest", "count"},
                    Combination{"sjf", "consolidated"}, Combination{"srtf", "consolidated"},
                    Combination{"srtf", "count"}, Combination{"srsf", "buddy"},
                    Combination{"las", "consolidated"}, Combination{"las:quantum=0", "first-fit"},
                    Combination{"chronus:lease=60", "consolidated"},
                    Combination{"gandiva", "gandiva"},
                    Combination{"pollux:interval=900", "gandiva"},
                    Combination{"sia:interval=300", "gandiva"},
                    Combination{"themis", "consolidated"}, Combination{"themis:lease=60", "buddy"},
                    Combination{"tiresias", "consolidated"},
                    Combination{"tiresias:promote=1,thresholds=300/900", "buddy"},
                    Combination{"max-min-fairness:round=60", "gandiva"},
                    Combination{"water-filling:types=blind,round=60", "gandiva"},
                    Combination{"finish-time-fairness:round=60", "gandiva"},
                    Combination{"makespan:round=60", "gandiva"},
                    Combination{"max-throughput:round=60", "gandiva"},
                    Combination{"isolated:round=60", "gandiva"},
                    Combination{"fifo-throughput:round=60", "gandiva"},
                    Combination{"allox:round=60", "gandiva"},
                    Combination{"gandiva-packing:round=60", "gandiva"},
                    Combination{"edf", "consolidated:spread=1"}),
    ShownName);

// By count, the incremental walk is the walk over all jobs.
class IncrementalWalk : public testing::TestWithParam<std::string> {};

TEST_P(IncrementalWalk, DecidesAsAWalkOverAllJobs) {
  for (unsigned seed = 0; seed < Rounds(30U); ++seed) {
    TestRun run{.jobs = RandomJobs(seed, 120),
                .cluster = MakeCluster(3, 4),
                .policy = GetParam(),
                .placement = "count"};
    const TestResult fast = RunTest(run);
    run.plain_walk = true;
    ExpectSameRun(fast, RunTest(run), seed);
  }
}

INSTANTIATE_TEST_SUITE_P(Preemptive, IncrementalWalk,
                         testing::Values("fifo", "fjf", "sjf", "srtf", "srsf", "las",
                                         "las:quantum=0", "edf", "tiresias",
                                         "tiresias:thresholds=300/900,promote=0.5"),
                         [](const testing::TestParamInfo<std::string>& one) {
                           return "case" + std::to_string(one.index);
                         });

// A sorted list remembers the keys that time does not move; the oracle asks for all of them.
class SortedList : public testing::TestWithParam<std::string> {};

// Nodes that come and go take GPUs from jobs between decisions.
Cluster FailingCluster() {
  Cluster cluster = MakeCluster(3, 4);
  for (int i = 0; i < 12; ++i) {
    const NodeId node = NodeAt(static_cast<std::size_t>(i % 3));
    cluster.changes.push_back({AtSeconds(100.0 + 170 * i), node, false});
    cluster.changes.push_back({AtSeconds(190.0 + 170 * i), node, true});
  }
  return cluster;
}

TEST_P(SortedList, DecidesAsIfAskingForEveryKey) {
  for (unsigned seed = 0; seed < Rounds(20U); ++seed) {
    TestRun run{.jobs = RandomJobs(seed, 120, 4),
                .cluster = FailingCluster(),
                .policy = GetParam(),
                .walk = Walk{.keep_running = false}};
    const TestResult fast = RunTest(run);
    run.plain_walk = true;
    ExpectSameRun(fast, RunTest(run), seed);
  }
}

// Packs each time as if for the first time.
class AskedEveryTime final : public Packer {
 public:
  explicit AskedEveryTime(const Packer& packer) : packer_(packer) {}
  [[nodiscard]] std::string_view name() const override { return packer_.name(); }
  [[nodiscard]] bool Pack(const PackRequest& ask, std::vector<Slices>& slices,
                          Memory* /*memory*/) const override {
    ++asked_;
    slices.clear();
    const std::unique_ptr<Memory> fresh = packer_.NewMemory();
    EXPECT_TRUE(packer_.Pack({ask.free, ask.demands, ask.jobs}, slices, fresh.get()) ||
                ask.demands.empty());
    return true;
  }
  [[nodiscard]] int asked() const { return asked_; }

 private:
  const Packer& packer_;
  mutable int asked_ = 0;
};

// In rounds, of which many change nothing.
TEST_P(SortedList, PacksAsIfForTheFirstTimeInEveryRound) {
  const Components synergy = PlacementNamed("synergy:mechanism=tune,keep=0");
  for (unsigned seed = 0; seed < Rounds(10U); ++seed) {
    TestRun run{.jobs = RandomJobs(seed, 120, 4),
                .cluster = FailingCluster(),
                .policy = GetParam(),
                .own_packer = synergy.packer.get()};
    run.rules.clock = {
        .mode = model::ClockRules::Mode::kRounds, .length = FromSeconds(5), .anchor = TimePoint{}};
    const TestResult remembered = RunTest(run);
    const AskedEveryTime asked(*synergy.packer);
    run.own_packer = &asked;
    ExpectSameRun(remembered, RunTest(run), seed);
    EXPECT_GT(asked.asked(), 2 * 120);  // more rounds than submits and ends
  }
}

INSTANTIATE_TEST_SUITE_P(Orderings, SortedList,
                         testing::Values("fifo", "fjf", "sjf", "srtf", "srsf", "las",
                                         "las:quantum=0", "las:guard=600", "edf", "tiresias",
                                         "tiresias:thresholds=300/900,promote=0.5"),
                         [](const testing::TestParamInfo<std::string>& one) {
                           return "case" + std::to_string(one.index);
                         });

// Of a walk that evicts from the tail, with named GPUs too: in rounds, as Blox has it.
class TailEvictingWalk : public testing::TestWithParam<Combination> {};

TEST_P(TailEvictingWalk, DecidesAsAWalkOverAllJobs) {
  std::uint32_t preemptions = 0;
  for (unsigned seed = 0; seed < Rounds(30U); ++seed) {
    TestRun run{.jobs = RandomJobs(seed, 120),
                .cluster = MakeCluster(3, 4),
                .policy = GetParam().policy,
                .placement = GetParam().placement,
                .walk = Walk{.misfit = Misfit::kEvictTail}};
    run.rules.clock = {
        .mode = model::ClockRules::Mode::kRounds, .length = FromSeconds(30), .anchor = TimePoint{}};
    run.rules.end.finish = model::EndRule::Finish::kRoundEnd;
    const TestResult fast = RunTest(run);
    run.plain_walk = true;
    ExpectSameRun(fast, RunTest(run), seed);
    for (const model::JobRecord& job : fast.records) {
      preemptions += job.preemptions;
    }
  }
  EXPECT_EQ(preemptions == 0, GetParam().policy == "fifo");
}

INSTANTIATE_TEST_SUITE_P(
    Blox, TailEvictingWalk,
    testing::Values(Combination{"fifo", "scattered"}, Combination{"srtf", "scattered"},
                    Combination{"srtf", "scattered:overshoot=1"},
                    Combination{"las:quantum=0,service=time", "scattered:overshoot=1"},
                    Combination{"las:quantum=0,service=time,guard=600", "consolidated:spread=1"}),
    ShownName);

}  // namespace
}  // namespace trainyard
