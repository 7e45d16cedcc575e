// SPDX-License-Identifier: Apache-2.0
// Jobs that are not to be requeued (JobTraits::no_requeue): whatever the policy, they keep what
// they have once they run, and the others finish.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/journal.h"
#include "engine_tests/harness.h"
#include "engine_tests/random_profiles.h"
#include "model/conditions.h"
#include "model/job_fields.h"
#include "support/sanitized.h"

namespace trainyard {
namespace {

enum class Jobs { kWithDuration, kWithStages, kElastic };

struct Case {
  std::string policy;
  std::string placement = "consolidated";
  std::string grouping{};
  Jobs jobs = Jobs::kWithDuration;
  std::string admission = "all";
  bool changes_others = false;  // other jobs are preempted, moved or resized, whatever the seed
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.policy << " on " << one.placement << " " << one.grouping;
}

JobSpec Kept(const JobSpec& job) {
  JobSpec kept = job;
  JobTraits traits = model::PartOf<JobTraits>(job);
  traits.no_requeue = true;
  kept.traits = std::make_shared<const JobTraits>(std::move(traits));
  return kept;
}

// Every third is to be kept.
std::vector<JobSpec> WithKept(std::vector<JobSpec> jobs) {
  for (std::size_t i = 0; i < jobs.size(); i += 3) {
    jobs[i] = Kept(jobs[i]);
  }
  return jobs;
}

StageTimes RandomStages(std::mt19937& random) {
  StageTimes times;
  for (int stage = 0; stage < 3; ++stage) {
    times.stages.push_back(0.05 + static_cast<double>(random() % 100) / 100);
    times.iteration += times.stages.back();
  }
  return times;
}

class NoRequeue : public testing::TestWithParam<Case> {
 protected:
  TestRun Run(unsigned seed) {
    std::mt19937 random(seed);
    TestRun run{.jobs = RandomJobs(seed, 100, 4),
                .cluster = MakeCluster(3, 4),
                .policy = GetParam().policy,
                .grouping = GetParam().grouping,
                .placement = GetParam().placement,
                .admission = GetParam().admission};
    if (GetParam().jobs == Jobs::kWithStages) {
      rates_ = profile::MakeMixedModel(nullptr);
      for (JobSpec& job : run.jobs) {
        job.iterations = Seconds(*job.duration);
        job.duration.reset();
        job.model = "model" + std::to_string(random() % 5);
        job.priority = static_cast<int>(random() % 2);
        job.traits = std::make_shared<const JobTraits>(JobTraits{.stages = RandomStages(random)});
      }
    } else if (GetParam().jobs == Jobs::kElastic) {
      rates_ = std::make_unique<RandomProfiles>(seed);
      run.jobs = JobsWithDeadlines(seed, 60, *rates_);
    }
    run.rates = rates_.get();
    run.jobs = WithKept(std::move(run.jobs));
    run.rules.debt = {};
    run.overheads = SecondsOfOverhead();
    return run;
  }

 private:
  std::unique_ptr<ExecutionModel> rates_;
};

// What becomes of a run, step by step.
struct Played {
  std::string wrong;  // a decision was refused, or a job to be kept was not
  std::vector<model::JobRecord> records;
  std::vector<std::string> actions;  // of each step
  int begun = 0;                     // jobs to be kept
  int changes_of_others = 0;
};

// Once such a job makes progress, nothing is said of it but its end, and other CPUs.
std::string WrongIn(std::span<const model::Action> actions, const std::vector<JobSpec>& jobs,
                    std::vector<bool>& has_begun, Played& played) {
  for (const model::Action& action : actions) {
    const bool starts = action.kind == model::ActionKind::kLaunch;
    const bool changes = starts || action.kind == model::ActionKind::kPreempt ||
                         action.kind == model::ActionKind::kResize ||
                         action.kind == model::ActionKind::kMigrate;
    if (!model::IsNoRequeue(jobs[Index(action.job)])) {
      played.changes_of_others += changes && !starts ? 1 : 0;
      continue;
    }
    if (changes && has_begun[Index(action.job)]) {
      return "job " + std::to_string(Index(action.job)) + " is changed";
    }
    if (action.grant.holds() && action.grant.running && !has_begun[Index(action.job)]) {
      has_begun[Index(action.job)] = true;
      ++played.begun;
    }
  }
  return {};
}

// `with_forks`: each step is decided by a fork, too, which knows only what is saved.
Played Play(const TestRun& run, bool with_forks = false) {
  const TestParts parts(run);
  engine::Engine engine(parts.Setup());
  world::SimulatedWorld world(std::make_shared<const std::vector<JobSpec>>(run.jobs), run.cluster,
                              engine);
  Played played;
  std::vector<bool> has_begun(run.jobs.size(), false);
  for (model::Batch batch = world.Next(engine.next_wakeup()); !batch.done && played.wrong.empty();
       batch = world.Next(engine.next_wakeup())) {
    std::string by_fork;
    if (with_forks) {
      const auto forked = engine.Fork();
      const auto said = forked->Step(batch);
      by_fork = said.ok() ? engine::EncodeActions(said.value()) : said.error().message;
    }
    const auto actions = engine.Step(batch);
    if (!actions.ok()) {
      played.wrong = actions.error().message;
      break;
    }
    played.wrong = WrongIn(actions.value(), run.jobs, has_begun, played);
    played.actions.push_back(engine::EncodeActions(actions.value()));
    if (with_forks && by_fork != played.actions.back()) {
      played.wrong = "a fork decides otherwise at " + std::to_string(Seconds(batch.now));
    }
  }
  played.records.assign(engine.records().begin(), engine.records().end());
  return played;
}

TEST_P(NoRequeue, JobsKeepWhatTheyHaveAndTheOthersFinish) {
  int changes_of_others = 0;
  for (unsigned seed = 1; seed <= Rounds(6U); ++seed) {
    const TestRun run = Run(seed);
    const Played played = Play(run, seed == 1);
    ASSERT_EQ(played.wrong, "") << "seed " << seed;
    for (std::size_t i = 0; i < played.records.size(); ++i) {
      const model::JobPhase phase = played.records[i].phase.get();
      ASSERT_TRUE(phase == model::JobPhase::kCompleted ||
                  (phase == model::JobPhase::kRejected && run.admission != "all"))
          << "job " << i << ", seed " << seed;
    }
    EXPECT_GT(played.begun, 0) << "seed " << seed;
    changes_of_others += played.changes_of_others;
  }
  EXPECT_TRUE(changes_of_others > 0 || !GetParam().changes_others);
}

TEST_P(NoRequeue, AReplayOfTheJournalDoesTheSame) {
  const TestRun run = Run(7);
  const TestResult result = RunTest(run);
  ASSERT_TRUE(result.status.ok()) << result.status.error().message;
  EXPECT_EQ(RunTest(run, &result.journal).digest, result.digest);
}

// Some nodes fail, others are drained and jobs on them finish.
TEST_P(NoRequeue, JobsOfALostNodeHaveFailedAndNoOtherHas) {
  if (GetParam().placement == "count") {
    return;  // names no GPUs: such a run is refused
  }
  int failed = 0;
  for (unsigned seed = 1; seed <= Rounds(4U); ++seed) {
    TestRun run = Run(seed);
    for (int i = 0; i < 30; ++i) {
      const double at = 40.0 + 90 * i;
      const NodeId node = NodeAt(static_cast<std::size_t>(i % 3));
      const auto how = i % 2 == 0 ? NodeChange::How::kFails : NodeChange::How::kFinish;
      run.cluster.changes.push_back({.at = AtSeconds(at), .node = node, .up = false, .how = how});
      run.cluster.changes.push_back({.at = AtSeconds(at + 60), .node = node, .up = true});
    }
    const Played played = Play(run, seed == 1);
    ASSERT_EQ(played.wrong, "") << "seed " << seed;
    for (std::size_t i = 0; i < played.records.size(); ++i) {
      const model::JobRecord& job = played.records[i];
      const model::JobPhase phase = job.phase.get();
      failed += phase == model::JobPhase::kFailed ? 1 : 0;
      EXPECT_TRUE(phase == model::JobPhase::kCompleted ||
                  (phase == model::JobPhase::kFailed && model::IsNoRequeue(*job.spec)) ||
                  (phase == model::JobPhase::kRejected && run.admission != "all"))
          << "job " << i << ", seed " << seed;
    }
  }
  EXPECT_GT(failed, 0);
}

Case Plain(std::string policy, std::string placement, bool changes_others = false) {
  return {.policy = std::move(policy),
          .placement = std::move(placement),
          .changes_others = changes_others};
}
Case Sharing(std::string policy, std::string placement, std::string grouping = "") {
  return {.policy = std::move(policy),
          .placement = std::move(placement),
          .grouping = std::move(grouping),
          .jobs = Jobs::kWithStages};
}
Case Elastic(std::string policy, std::string placement, std::string admission = "all") {
  return {.policy = std::move(policy),
          .placement = std::move(placement),
          .jobs = Jobs::kElastic,
          .admission = std::move(admission)};
}

INSTANTIATE_TEST_SUITE_P(
    Catalogue, NoRequeue,
    testing::Values(
        Plain("fifo", "consolidated"), Plain("fifo", "count"), Plain("fjf", "first-fit"),
        Plain("backfill", "consolidated"), Plain("backfill:reservations=3", "count"),
        Plain("sjf", "consolidated"), Plain("srtf", "consolidated", true),
        Plain("srtf", "count", true), Plain("srtf", "synergy"), Plain("srsf", "buddy", true),
        Plain("las:quantum=0", "first-fit", true), Plain("las:guard=600", "consolidated"),
        Plain("ftf", "consolidated"), Plain("drf", "consolidated"), Plain("tetris", "consolidated"),
        Plain("edf", "consolidated:spread=1"), Plain("chronus:lease=60", "consolidated"),
        Plain("gandiva", "gandiva"), Plain("pollux:interval=900", "gandiva"),
        Plain("sia:interval=300", "gandiva"), Plain("themis:lease=60", "buddy"),
        Plain("tiresias:promote=1,thresholds=300/900", "buddy", true),
        Plain("max-min-fairness:round=60", "gandiva"),
        Plain("water-filling:types=blind,round=60", "gandiva"),
        Plain("finish-time-fairness:round=60", "gandiva"), Plain("makespan:round=60", "gandiva"),
        Plain("max-throughput:round=60", "gandiva"), Plain("isolated:round=60", "gandiva"),
        Plain("fifo-throughput:round=60", "gandiva"), Plain("allox:round=60", "gandiva"),
        Plain("gandiva-packing:round=60", "gandiva"), Sharing("antman", "gandiva"),
        Sharing("muri-s", "consolidated"), Sharing("muri-l", "consolidated"),
        Sharing("muri-s:split=0", "consolidated"), Sharing("srtf", "consolidated", "interleave"),
        Sharing("tiresias", "buddy", "interleave:match=0,split=0"),
        Elastic("elasticflow", "buddy", "deadline"), Elastic("elastic-edf", "buddy"),
        Elastic("optimus", "consolidated")),
    [](const testing::TestParamInfo<Case>& one) { return "case" + std::to_string(one.index); });

// --------------------------------------------------------------------------------- single jobs

TEST(NoRequeueTest, AJobWithoutGpusGivesWayToNone) {
  Cluster cluster = MakeCluster(1, 4);
  cluster.nodes[0].capacity = {.milli_cpus = 16'000, .memory_mib = 65'536};
  const JobSpec on_cpus = Asking(MakeJob(1, 0, 50), {.cpus = {.milli = 12'000}});
  const JobSpec large = MakeJob(20, 4, 40);
  EXPECT_EQ(Starts({on_cpus, large}, cluster, "srtf"), (std::vector<double>{1, 20}));
  EXPECT_EQ(Starts({Kept(on_cpus), large}, cluster, "srtf"), (std::vector<double>{1, 51}))
      << "the other waits for its CPUs";
}

// A shorter job comes at 10.
TEST(NoRequeueTest, AJobIsPreemptedAsOthersAreUntilItRuns) {
  const TestRun run{.jobs = {Kept(MakeJob(0, 4, 100)), Kept(MakeJob(5, 4, 50)), MakeJob(10, 4, 5)},
                    .cluster = MakeCluster(1, 4),
                    .policy = "srtf"};
  const TestResult result = RunTest(run);
  EXPECT_EQ(result.start(0), 0);
  EXPECT_EQ(result.end(0), 100);
  EXPECT_EQ(result.start(2), 100);
  EXPECT_EQ(result.start(1), 105);
}

TEST(NoRequeueTest, AJobThatHasLostItsNodeSaysWhyItHasFailed) {
  TestRun run{.jobs = {Kept(MakeJob(0, 4, 100)), MakeJob(5, 4, 50)}, .cluster = MakeCluster(1, 4)};
  run.cluster.changes = {{.at = AtSeconds(30), .node = NodeAt(0), .up = false},
                         {.at = AtSeconds(40), .node = NodeAt(0), .up = true}};
  const TestParts parts(run);
  engine::Engine engine(parts.Setup());
  world::SimulatedWorld world(std::make_shared<const std::vector<JobSpec>>(run.jobs), run.cluster,
                              engine);
  std::string reason;
  for (model::Batch batch = world.Next(engine.next_wakeup()); !batch.done;
       batch = world.Next(engine.next_wakeup())) {
    const auto actions = engine.Step(batch);
    ASSERT_TRUE(actions.ok()) << actions.error().message;
    for (const model::Action& action : actions.value()) {
      reason = action.job == JobAt(0) && !action.reason.empty() ? action.reason : reason;
    }
  }
  EXPECT_EQ(reason, model::kLostNoRequeue);
  EXPECT_EQ(engine.records()[0].phase.get(), model::JobPhase::kFailed);
  EXPECT_EQ(Seconds(engine.records()[0].done), 30);
  EXPECT_EQ(engine.records()[1].phase.get(), model::JobPhase::kCompleted);
}

}  // namespace
}  // namespace trainyard
