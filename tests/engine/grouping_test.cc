// SPDX-License-Identifier: Apache-2.0
// Interleaved groups beside orderings.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "engine_tests/harness.h"
#include "profile/execution_model.h"
#include "support/sanitized.h"

namespace trainyard {
namespace {

// Each kind is busy with something else.
std::vector<StageTimes> Kinds() {
  return {{.iteration = 0.5, .stages = {0.42, 0.05, 0.03}},
          {.iteration = 0.4, .stages = {0.02, 0.35, 0.03}},
          {.iteration = 0.4, .stages = {0.03, 0.05, 0.32}},
          {.iteration = 0.6, .stages = {0.2, 0.25, 0.15}}};
}

// Some state no stages and stay alone.
std::vector<JobSpec> StagedJobs(unsigned seed, int count) {
  std::mt19937 random(seed);
  std::vector<JobSpec> jobs = RandomJobs(seed, count, 4);
  for (JobSpec& job : jobs) {
    if (random() % 10 != 0) {
      job.traits = std::make_shared<const JobTraits>(
          JobTraits{.stages = Kinds()[random() % Kinds().size()]});
    }
  }
  return jobs;
}

class Grouped : public testing::TestWithParam<std::string> {
 protected:
  TestRun Run(unsigned seed) {
    return {.jobs = StagedJobs(seed, 150),
            .cluster = MakeCluster(2, 4),
            .policy = GetParam(),
            .grouping = "interleave",
            .rates = rates_.get()};
  }
  static double MeanJct(const TestResult& result) {
    return std::accumulate(result.records.begin(), result.records.end(), 0.0,
                           [](double sum, const model::JobRecord& job) {
                             return sum + Seconds(job.done - job.spec->submit);
                           }) /
           static_cast<double>(result.records.size());
  }
  std::unique_ptr<ExecutionModel> rates_ = profile::MakeMixedModel(nullptr);
};

TEST_P(Grouped, AllJobsFinishAndNoGpuIsGivenTwice) {
  for (unsigned seed = 1; seed < 1 + Rounds(5U); ++seed) {
    const TestResult result = RunTest(Run(seed));
    ASSERT_TRUE(result.status.ok()) << result.status.error().message;
    for (const model::JobRecord& job : result.records) {
      ASSERT_EQ(job.phase.get(), model::JobPhase::kCompleted) << "seed " << seed;
      EXPECT_LE(job.progress.useful_gpu_micros, job.progress.gpu_micros);
    }
    for (const engine::DecisionSample& sample : result.samples) {
      EXPECT_LE(sample.gpus_used, 8);
    }
    EXPECT_TRUE(
        std::any_of(result.samples.begin(), result.samples.end(),
                    [](const engine::DecisionSample& sample) { return sample.jobs_running > 8; }));
  }
}

TEST_P(Grouped, OnACrowdedClusterJobsAreThroughSooner) {
  for (unsigned seed = 1; seed < 1 + Rounds(5U); ++seed) {
    TestRun run = Run(seed);
    const double grouped = MeanJct(RunTest(run));
    run.grouping = "";
    const double alone = MeanJct(RunTest(run));
    EXPECT_LT(grouped, alone) << "seed " << seed;
    RecordProperty("grouped_" + std::to_string(seed), std::to_string(grouped));
    RecordProperty("alone_" + std::to_string(seed), std::to_string(alone));
  }
}

TEST_P(Grouped, ARunIsRepeatable) {
  const TestRun run = Run(7);
  const TestResult first = RunTest(run);
  EXPECT_EQ(first.digest, RunTest(run).digest);
  EXPECT_EQ(first.digest, RunTest(run, &first.journal).digest);
}

TEST_P(Grouped, OneJobInAGroupAtMostIsNoGroup) {
  TestRun run = Run(8);
  run.grouping = "interleave:size=1";
  const TestResult result = RunTest(run);
  ASSERT_TRUE(result.status.ok()) << result.status.error().message;
  for (const engine::DecisionSample& sample : result.samples) {
    EXPECT_LE(sample.jobs_running, 8);
  }
}

TEST_P(Grouped, NodeFailuresAreSurvived) {
  TestRun run = Run(9);
  for (int i = 0; i < 30; ++i) {
    const NodeId node = NodeAt(static_cast<std::size_t>(i % 2));
    run.cluster.changes.push_back({AtSeconds(50 + 90 * i), node, false});
    run.cluster.changes.push_back({AtSeconds(115 + 90 * i), node, true});
  }
  const TestResult result = RunTest(run);
  ASSERT_TRUE(result.status.ok()) << result.status.error().message;
  for (const model::JobRecord& job : result.records) {
    EXPECT_EQ(job.phase.get(), model::JobPhase::kCompleted);
  }
}

// On several GPU types nobody is grouped with one who accepts other types.
TEST_P(Grouped, GroupsLieOnTypesThatAllOfThemAccept) {
  TestRun run = Run(10);
  run.cluster.nodes[0].gpu_type = "A100";
  run.cluster.nodes[1].gpu_type = "V100";
  run.cluster.gpu_types = {{.name = "A100", .speed = 2}};
  for (std::size_t i = 0; i < run.jobs.size(); i += 3) {
    JobTraits traits = run.jobs[i].traits ? *run.jobs[i].traits : JobTraits();
    traits.gpu_types = {i % 2 == 0 ? "A100" : "V100"};
    run.jobs[i].traits = std::make_shared<const JobTraits>(traits);
  }
  const std::unique_ptr<ExecutionModel> rates =
      profile::OnTypesOf(run.cluster, profile::MakeMixedModel(nullptr));
  run.rates = rates.get();
  const TestResult result = RunTest(run);
  ASSERT_TRUE(result.status.ok()) << result.status.error().message;
  for (const model::JobRecord& job : result.records) {
    EXPECT_EQ(job.phase.get(), model::JobPhase::kCompleted);
  }
}

INSTANTIATE_TEST_SUITE_P(Orderings, Grouped,
                         testing::Values("fifo", "fjf", "sjf", "srtf", "srsf", "las", "edf",
                                         "tiresias", "tiresias:promote=1,thresholds=300/900"),
                         [](const testing::TestParamInfo<std::string>& one) {
                           return "case" + std::to_string(one.index);
                         });

// Who runs under an ordering that does not preempt runs on.
TEST(GroupingTest, NobodyIsStoppedWhereTheOrderingDoesNotPreempt) {
  const std::unique_ptr<ExecutionModel> rates = profile::MakeMixedModel(nullptr);
  for (const std::string policy : {"fifo", "fjf", "sjf"}) {
    for (unsigned seed = 1; seed < 1 + Rounds(10U); ++seed) {
      const TestResult result = RunTest({.jobs = StagedJobs(seed, 150),
                                         .cluster = MakeCluster(2, 4),
                                         .policy = policy,
                                         .grouping = "interleave",
                                         .rates = rates.get()});
      ASSERT_TRUE(result.status.ok()) << result.status.error().message;
      for (const model::JobRecord& job : result.records) {
        EXPECT_EQ(job.progress.run_time, job.done - job.first_start) << policy << " " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace trainyard
