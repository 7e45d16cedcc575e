// SPDX-License-Identifier: Apache-2.0
// Jobs that share GPUs: no GPU-second is given twice. The harness looks at every GPU after each
// decision (GivenTwice); here are the jobs that tempt policies, and the sums at the end.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "engine_tests/harness.h"
#include "support/gpu_shares.h"
#include "support/sanitized.h"

namespace trainyard {
namespace {

struct Sharing {
  std::string policy;
  std::string placement = "consolidated";
  std::string grouping{};
};

void PrintTo(const Sharing& one, std::ostream* out) { *out << one.policy << " " << one.grouping; }

// Every stage is now and then absent, and now and then all there is.
JobSpec Staged(std::mt19937& random, int number) {
  std::vector<double> stages;
  for (int stage = 0; stage < 3; ++stage) {
    stages.push_back(random() % 3 == 0 ? 0 : static_cast<double>(random() % 1000) / 1000);
  }
  if (stages == std::vector<double>(3, 0.0)) {
    stages[1] = 1;
  }
  double iteration = 0;
  for (const double stage : stages) {
    iteration += stage;
  }
  JobSpec job{.name = "job" + std::to_string(number),
              .gpus = 1 << (random() % 3),
              .submit = AtSeconds(static_cast<double>(random() % 2000)),
              .iterations = std::floor((20 + static_cast<double>(random() % 600)) / iteration) + 1,
              .priority = static_cast<int>(random() % 2)};
  job.traits =
      std::make_shared<const JobTraits>(JobTraits{.stages = StageTimes{iteration, stages}});
  return job;
}

class SharedGpus : public testing::TestWithParam<Sharing> {
 protected:
  static std::vector<JobSpec> JobsOf(unsigned seed) {
    std::mt19937 random(seed);
    std::vector<JobSpec> jobs;
    for (int i = 0; i < 60; ++i) {
      jobs.push_back(Staged(random, i));
      jobs.back().model = "model" + std::to_string(i % 6);
    }
    return jobs;
  }
  static TestRun RunOf(std::vector<JobSpec> jobs, int nodes, int gpus) {
    std::stable_sort(jobs.begin(), jobs.end(),
                     [](const JobSpec& a, const JobSpec& b) { return a.submit < b.submit; });
    TestRun run{.jobs = std::move(jobs),
                .cluster = MakeCluster(nodes, gpus),
                .policy = GetParam().policy,
                .grouping = GetParam().grouping,
                .placement = GetParam().placement};
    run.rules.debt = {};
    run.overheads = profile::OverheadModel(profile::OverheadTable{
        .fallback = {.start = FromSeconds(2), .restart = FromSeconds(4)}, .models = {}});
    return run;
  }
};

TEST_P(SharedGpus, NoGpuSecondIsGivenTwice) {
  for (unsigned seed = 0; seed < Rounds(20U); ++seed) {
    const std::unique_ptr<ExecutionModel> rates = profile::MakeMixedModel(nullptr);
    TestRun run = RunOf(JobsOf(seed), 2, 4);
    run.rates = rates.get();
    const TestResult result = RunTest(run);
    ASSERT_TRUE(result.status.ok()) << result.status.error().message;
    for (const model::JobRecord& job : result.records) {
      ASSERT_EQ(job.phase.get(), model::JobPhase::kCompleted) << "seed " << seed;
    }
  }
}

// Nodes of two speeds, or of another one than 1 where the policy cannot tell types apart.
TEST_P(SharedGpus, NorIsItOnGpusOfOtherSpeeds) {
  for (unsigned seed = 0; seed < Rounds(20U); ++seed) {
    TestRun run = RunOf(JobsOf(seed), 2, 4);
    run.cluster.nodes[0].gpu_type = "A100";
    run.cluster.nodes[1].gpu_type = GetParam().policy == "antman" ? "A100" : "T4";
    run.cluster.gpu_types = {{.name = "A100", .speed = 2}, {.name = "T4", .speed = 0.5}};
    const std::unique_ptr<ExecutionModel> rates =
        profile::OnTypesOf(run.cluster, profile::MakeMixedModel(nullptr));
    run.rates = rates.get();
    const TestResult result = RunTest(run);
    ASSERT_TRUE(result.status.ok()) << result.status.error().message;
  }
}

TEST_P(SharedGpus, NorIsItWhereStagesAreMeasured) {
  for (unsigned seed = 1; seed <= Rounds(20U); ++seed) {
    const std::unique_ptr<ExecutionModel> rates = profile::MakeMixedModel(nullptr);
    TestRun run = RunOf(JobsOf(seed), 2, 4);
    run.rates = rates.get();
    run.measure_seed = seed;
    const TestResult result = RunTest(run);
    ASSERT_TRUE(result.status.ok()) << result.status.error().message;
  }
}

// On one GPU the last end is no earlier than the sum of what the jobs do on it.
TEST_P(SharedGpus, JobsThatNeverLeaveTheGpuTakeAsLongAsOneAfterTheOther) {
  for (const std::size_t busy : {0U, 1U, 2U}) {
    std::vector<JobSpec> jobs;
    for (int priority : {0, 1, 0, 1}) {
      StageTimes times{.iteration = 1, .stages = {0, 0, 0}};
      times.stages[busy] = 1;
      jobs.push_back({.name = "job", .gpus = 1, .iterations = 1000, .priority = priority});
      jobs.back().traits = std::make_shared<const JobTraits>(JobTraits{.stages = times});
    }
    const std::unique_ptr<ExecutionModel> rates = profile::MakeMixedModel(nullptr);
    TestRun run = RunOf(std::move(jobs), 1, 1);
    run.rates = rates.get();
    const TestResult result = RunTest(run);
    ASSERT_TRUE(result.status.ok()) << result.status.error().message;
    double last = 0;
    for (std::size_t job = 0; job < result.records.size(); ++job) {
      last = std::max(last, result.end(job));
    }
    // Groups may load two at a time.
    EXPECT_GE(last, busy == 0 && GetParam().policy != "antman" ? 2000 : 4000) << "stage " << busy;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Catalogue, SharedGpus,
    testing::Values(Sharing{"antman", "gandiva"}, Sharing{"muri-s"}, Sharing{"muri-l"},
                    Sharing{"muri-s:split=0"}, Sharing{"fifo", "consolidated", "interleave"},
                    Sharing{"srtf", "consolidated", "interleave"},
                    Sharing{"tiresias", "buddy", "interleave:match=0,split=0"}),
    [](const testing::TestParamInfo<Sharing>& one) { return "case" + std::to_string(one.index); });

TEST(GivenTwiceTest, NamesAGpuThatIsUsedTwice) {
  const std::unique_ptr<ExecutionModel> rates = profile::MakeMixedModel(nullptr);
  JobSpec spec{.gpus = 1, .iterations = 10};
  spec.traits = std::make_shared<const JobTraits>(
      JobTraits{.stages = StageTimes{.iteration = 1, .stages = {0, 1, 0}}});
  model::JobRecord job;
  job.spec = std::make_shared<const JobSpec>(spec);
  job.grant = {.gpus = 1, .slices = {{.node = NodeAt(0), .gpus = 0b100}}};
  job.progress.rate = 1;
  std::vector<model::JobRecord> records{job};
  EXPECT_EQ(GivenTwice(records, *rates), "");
  records.push_back(job);
  EXPECT_NE(GivenTwice(records, *rates).find("GPU 2 of node 0 is used by 200"), std::string::npos);
  records[0].progress.rate = records[1].progress.rate = 0.5;
  EXPECT_EQ(GivenTwice(records, *rates), "");
  // Twice as fast, as is a GPU of that type.
  records[0].progress.rate = records[1].progress.rate = 1;
  const Cluster fast{.nodes = {NodeSpec{.gpus = 4, .gpu_type = "A100"}},
                     .gpu_types = {{.name = "A100", .speed = 2}}};
  const auto on_fast = profile::OnTypesOf(fast, profile::MakeMixedModel(nullptr));
  EXPECT_EQ(GivenTwice(records, *on_fast), "");
  records[0].progress.rate = 1.5;
  EXPECT_NE(GivenTwice(records, *on_fast).find("is used by 125"), std::string::npos);
}

}  // namespace
}  // namespace trainyard
