// SPDX-License-Identifier: Apache-2.0
// Clusters with partitions.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <random>

#include "engine_tests/harness.h"
#include "world/simulated_world.h"

namespace trainyard {
namespace {

// Six nodes of four GPUs: the first two are "debug", the others "long".
Cluster Parted() {
  Cluster cluster = MakeCluster(6, 4);
  cluster.partitions = {
      {.name = "debug", .has_all_nodes = false, .nodes = {"n0", "n1"}, .is_default = true},
      {.name = "long", .has_all_nodes = false, .nodes = {"n2", "n3", "n4", "n5"}}};
  return cluster;
}

// The nodes [first, last) of that cluster, without partitions.
Cluster Part(std::size_t first, std::size_t last) {
  Cluster cluster = Parted();
  cluster.partitions.clear();
  cluster.nodes = {cluster.nodes.begin() + static_cast<std::ptrdiff_t>(first),
                   cluster.nodes.begin() + static_cast<std::ptrdiff_t>(last)};
  return cluster;
}

std::vector<JobSpec> QueuedJobs(unsigned seed, int count) {
  std::mt19937 random(seed);
  std::vector<JobSpec> jobs = RandomJobs(seed, count);
  for (JobSpec& job : jobs) {
    job.queue = random() % 3 == 0 ? "long" : random() % 2 == 0 ? "debug" : "";
    job.gpus = std::min(job.gpus, job.queue == "long" ? 16 : 8);
  }
  return jobs;
}

bool IsLong(const JobSpec& job) { return job.queue == "long"; }

struct Named {
  std::string policy;
  std::string placement = "consolidated";
};

class OnPartitions : public testing::TestWithParam<Named> {
 protected:
  static TestRun Run(std::vector<JobSpec> jobs, Cluster cluster) {
    return {.jobs = std::move(jobs),
            .cluster = std::move(cluster),
            .policy = GetParam().policy,
            .placement = GetParam().placement};
  }
};

// Disjoint partitions are clusters of their own: each job ends when it would there.
TEST_P(OnPartitions, DisjointPartitionsAreAsClustersOfTheirOwn) {
  for (unsigned seed = 1; seed < 8; ++seed) {
    const std::vector<JobSpec> jobs = QueuedJobs(seed, 120);
    std::vector<JobSpec> of_long;
    std::vector<JobSpec> of_debug;
    for (const JobSpec& job : jobs) {
      (IsLong(job) ? of_long : of_debug).push_back(job);
    }
    const TestResult all = RunTest(Run(jobs, Parted()));
    const TestResult debug = RunTest(Run(of_debug, Part(0, 2)));
    const TestResult rest = RunTest(Run(of_long, Part(2, 6)));
    ASSERT_TRUE(all.status.ok()) << all.status.error().message;
    std::size_t next_long = 0;
    std::size_t next_debug = 0;
    for (const model::JobRecord& job : all.records) {
      ASSERT_EQ(job.phase.get(), model::JobPhase::kCompleted) << "seed " << seed;
      const model::JobRecord& alone =
          IsLong(*job.spec) ? rest.records[next_long++] : debug.records[next_debug++];
      ASSERT_EQ(Seconds(job.done.time_since_epoch()), Seconds(alone.done.time_since_epoch()))
          << "seed " << seed << " " << job.spec->queue;
    }
  }
}

TEST_P(OnPartitions, ARunIsRepeatable) {
  const TestRun run = Run(QueuedJobs(9, 120), Parted());
  const TestResult first = RunTest(run);
  EXPECT_EQ(first.digest, RunTest(run).digest);
  EXPECT_EQ(first.digest, RunTest(run, &first.journal).digest);
}

// Those whose order compares a job with itself only; others weigh all jobs of the cluster.
INSTANTIATE_TEST_SUITE_P(
    Catalogue, OnPartitions,
    testing::Values(Named{"fifo"}, Named{"fifo", "scattered"}, Named{"fjf", "first-fit"},
                    Named{"backfill"}, Named{"backfill:order=shortest", "scattered"},
                    Named{"backfill:reservations=4"}, Named{"sjf"}, Named{"srtf"},
                    Named{"srtf", "buddy"}, Named{"srsf", "scattered"}, Named{"las"},
                    Named{"tiresias"}, Named{"edf", "consolidated:spread=1"}),
    [](const testing::TestParamInfo<Named>& one) { return "case" + std::to_string(one.index); });

// ------------------------------------------------------------------- partitions that change

class WhilePartitionsChange : public testing::TestWithParam<Named> {
 protected:
  // A job on n2 to n5 for 1000 s; then others, most of which are shorter, for both partitions.
  WhilePartitionsChange() {
    JobSpec first = MakeJob(0, 16, 1000);
    first.queue = "long";
    run_.jobs = {first};
    for (int i = 0; i < 20; ++i) {
      JobSpec job = MakeJob(20 + 15 * i, i % 3 == 0 ? 8 : 4, 60);
      job.queue = i % 2 == 0 ? "debug" : "long";
      run_.jobs.push_back(job);
    }
    parts_.push_back(std::make_unique<TestParts>(run_));
    engine_ = std::make_unique<engine::Engine>(parts_.back()->Setup());
  }
  void Reconfigure(std::vector<Partition> partitions) {
    run_.cluster.partitions = std::move(partitions);
    parts_.push_back(std::make_unique<TestParts>(run_));
    engine_->Reconfigure(parts_.back()->Setup().configuration);
  }
  // With `add` for what happens beside what the jobs do. What the engine does with job 0 until it
  // ends, other than giving it a rate, goes to `of_first_`.
  void Play(const std::function<void(model::Batch&)>& add) {
    world::SimulatedWorld world(std::make_shared<const std::vector<JobSpec>>(run_.jobs),
                                run_.cluster, *engine_);
    for (model::Batch batch = world.Next(engine_->next_wakeup()); !batch.done;
         batch = world.Next(engine_->next_wakeup())) {
      add(batch);
      const Result<std::span<const model::Action>> actions = engine_->Step(batch);
      ASSERT_TRUE(actions.ok()) << actions.error().message;
      for (const model::Action& action : actions.value()) {
        if (action.job == JobAt(0) && action.kind != model::ActionKind::kPace &&
            action.kind != model::ActionKind::kAdmit &&
            action.kind != model::ActionKind::kRelease) {
          of_first_.push_back(action);
        }
      }
    }
  }

  TestRun run_{.jobs = {},
               .cluster = Parted(),
               .policy = GetParam().policy,
               .placement = GetParam().placement};
  std::vector<std::unique_ptr<TestParts>> parts_;
  std::unique_ptr<engine::Engine> engine_;
  std::vector<model::Action> of_first_;
};

// On nodes that have left its partition nobody preempts or moves it, also once one of them has been
// drained and is back.
TEST_P(WhilePartitionsChange, AJobRunsOnWhereItsPartitionIsNoLonger) {
  std::size_t step = 0;
  Play([&](model::Batch& batch) {
    if (++step == 3) {
      Reconfigure({{.name = "debug",
                    .has_all_nodes = false,
                    .nodes = {"n0", "n1", "n2", "n3"},
                    .is_default = true},
                   {.name = "long", .has_all_nodes = false, .nodes = {"n4", "n5"}}});
    } else if (step == 6) {
      batch.events.push_back(
          {.at = batch.now, .fact = model::fact::NodeCordoned{.node = NodeAt(4)}});
    } else if (step == 8) {
      batch.events.push_back({.at = batch.now, .fact = model::fact::NodeUp{.node = NodeAt(4)}});
    }
  });
  ASSERT_EQ(of_first_.size(), 1U);  // its launch; it ends by itself
  EXPECT_EQ(of_first_[0].kind, model::ActionKind::kLaunch);
  EXPECT_EQ(Seconds(engine_->records()[0].done.time_since_epoch()), 1000);
  for (const model::JobRecord& job : engine_->records()) {
    EXPECT_EQ(job.phase.get(), model::JobPhase::kCompleted);
  }
}

// Once its nodes are its partition's again, it is the policy's again.
TEST_P(WhilePartitionsChange, AJobWhoseNodesAreItsPartitionsAgainMayBePreempted) {
  std::size_t step = 0;
  const std::vector<Partition> former = run_.cluster.partitions;
  Play([&](model::Batch& /*batch*/) {
    if (++step == 3) {
      Reconfigure(
          {{.name = "debug", .is_default = true}, {.name = "long", .has_all_nodes = false}});
    } else if (step == 5) {
      Reconfigure(former);
    }
  });
  EXPECT_GT(of_first_.size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(Preempting, WhilePartitionsChange,
                         testing::Values(Named{"srtf"}, Named{"srtf", "buddy"},
                                         Named{"srsf", "scattered"}, Named{"las:quantum=10"},
                                         Named{"ftf"}, Named{"tetris"}),
                         [](const testing::TestParamInfo<Named>& one) {
                           return "case" + std::to_string(one.index);
                         });

// It asks for other nodes itself.
TEST(PartitionsTest, ARunningJobThatGetsAnotherQueueGoesThere) {
  TestRun run{.jobs = {MakeJob(0, 8, 100)}, .cluster = Parted()};
  const TestParts parts(run);
  engine::Engine engine(parts.Setup());
  const auto step = [&engine](double at, model::Fact fact) {
    const TimePoint now = AtSeconds(at);
    const Result<std::span<const model::Action>> actions =
        engine.Step({.now = now, .events = {{.at = now, .fact = std::move(fact)}}});
    ASSERT_TRUE(actions.ok()) << actions.error().message;
  };
  auto spec = std::make_shared<JobSpec>(run.jobs[0]);
  step(0, model::fact::Submitted{.job = JobAt(0), .spec = spec});
  ASSERT_EQ(engine.records()[0].grant.slices[0].node, NodeAt(0));
  spec = std::make_shared<JobSpec>(*spec);
  spec->name = "another name";
  step(5, model::fact::Updated{.job = JobAt(0), .spec = spec});
  ASSERT_EQ(engine.records()[0].grant.slices[0].node, NodeAt(0));
  spec = std::make_shared<JobSpec>(*spec);
  spec->queue = "long";
  step(10, model::fact::Updated{.job = JobAt(0), .spec = spec});
  EXPECT_EQ(engine.records()[0].grant.slices[0].node, NodeAt(2));
}

// Without preemption the incremental walk places exactly as the walk over all jobs, in a strict
// order, too, where partitions overlap and some jobs may have every node.
TEST(PartitionsTest, BothWalksLeaveNodesToThoseWhoWaitForThem) {
  Cluster cluster = Parted();
  cluster.partitions[1].nodes = {"n1", "n2", "n3", "n4", "n5"};
  cluster.partitions.push_back({.name = "any"});
  for (const char* const policy : {"fifo", "fjf"}) {
    for (unsigned seed = 0; seed < 20; ++seed) {
      std::vector<JobSpec> jobs = QueuedJobs(seed, 150);
      for (std::size_t i = 0; i < jobs.size(); i += 4) {
        jobs[i].queue = "any";
      }
      TestRun run{.jobs = jobs, .cluster = cluster, .policy = policy};
      const TestResult fast = RunTest(run);
      run.plain_walk = true;
      ExpectSameRun(fast, RunTest(run), seed);
    }
  }
}

TEST(PartitionsTest, TheHeadOfOnePartitionDoesNotHoldUpAnother) {
  TestRun run{.jobs = {MakeJob(0, 8, 100), MakeJob(1, 8, 100), MakeJob(2, 8, 100),
                       MakeJob(3, 4, 50), MakeJob(4, 4, 10)},
              .cluster = Parted()};
  run.jobs[2].queue = "long";
  run.cluster.partitions.push_back({.name = "any"});
  run.jobs[3].queue = "any";  // leaves n0 and n1 to the second job
  const TestResult result = RunTest(run);
  EXPECT_EQ(result.end(0), 100);
  EXPECT_EQ(result.end(1), 200);
  EXPECT_EQ(result.end(2), 102);
  EXPECT_EQ(result.end(3), 53);
  EXPECT_EQ(result.end(4), 210);
}

TEST(PartitionsTest, AJobOfAPartitionThatIsNoneIsInTheDefaultOne) {
  TestRun run{.jobs = {MakeJob(0, 8, 100), MakeJob(0, 8, 100)}, .cluster = Parted()};
  run.jobs[0].queue = "gone";
  run.jobs[1].queue = "debug";
  EXPECT_EQ(RunTest(run).end(1), 200);
}

}  // namespace
}  // namespace trainyard
