// SPDX-License-Identifier: Apache-2.0
// Clusters of several GPU types.
#include <gtest/gtest.h>

#include <random>

#include "engine_tests/harness.h"
#include "engine_tests/random_profiles.h"
#include "profile/execution_model.h"

namespace trainyard {
namespace {

// Two nodes of each type; the A100 are the fastest.
Cluster MixedCluster() {
  Cluster cluster = MakeCluster(6, 4);
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
    cluster.nodes[i].gpu_type = i < 2 ? "V100" : i < 4 ? "A100" : "T4";
  }
  cluster.gpu_types = {{.name = "A100", .speed = 2}, {.name = "T4", .speed = 0.5}};
  return cluster;
}

std::shared_ptr<const JobTraits> Accepts(std::vector<std::string> types) {
  return std::make_shared<const JobTraits>(JobTraits{.gpu_types = std::move(types)});
}

// Some accept two types, some one.
std::vector<JobSpec> PickyJobs(unsigned seed, int count) {
  std::mt19937 random(seed);
  std::vector<JobSpec> jobs = RandomJobs(seed, count);
  for (JobSpec& job : jobs) {
    switch (random() % 5) {
      case 0:
        job.traits = Accepts({"A100"});
        break;
      case 1:
        job.traits = Accepts({"T4", "V100"});
        break;
      case 2:
        job.traits = Accepts({"A100", "H100", "V100"});
        break;
      default:
        break;
    }
  }
  return jobs;
}

struct Named {
  std::string policy;
  std::string placement = "consolidated";
};

class OnMixedCluster : public testing::TestWithParam<Named> {
 protected:
  static TestRun Run(unsigned seed) {
    return {.jobs = PickyJobs(seed, 120),
            .cluster = MixedCluster(),
            .policy = GetParam().policy,
            .placement = GetParam().placement};
  }
  std::unique_ptr<ExecutionModel> rates_ =
      profile::OnTypesOf(MixedCluster(), profile::MakeDurationModel());
};

// The engine verifies each grant; here, that nobody waits for ever, and that jobs are as fast as
// their GPUs: on A100 half of their duration, on T4 twice.
TEST_P(OnMixedCluster, AllJobsFinishOnTypesThatTheyAccept) {
  for (unsigned seed = 1; seed < 6; ++seed) {
    TestRun run = Run(seed);
    run.rates = rates_.get();
    const TestResult result = RunTest(run);
    ASSERT_TRUE(result.status.ok()) << result.status.error().message;
    for (const model::JobRecord& job : result.records) {
      ASSERT_EQ(job.phase.get(), model::JobPhase::kCompleted) << "seed " << seed;
      EXPECT_GE(job.progress.run_time, *job.spec->duration / 2 - Duration{64});
      EXPECT_LE(job.progress.run_time, *job.spec->duration * 2 + Duration{64});
      if (job.spec->traits && job.spec->traits->gpu_types.size() == 1) {
        EXPECT_NEAR(Seconds(job.progress.run_time), Seconds(*job.spec->duration) / 2, 1e-4);
      }
    }
  }
}

TEST_P(OnMixedCluster, ARunIsRepeatable) {
  TestRun run = Run(9);
  run.rates = rates_.get();
  const TestResult first = RunTest(run);
  EXPECT_EQ(first.digest, RunTest(run).digest);
  EXPECT_EQ(first.digest, RunTest(run, &first.journal).digest);
}

TEST_P(OnMixedCluster, NodeFailuresAreSurvived) {
  TestRun run = Run(7);
  run.rates = rates_.get();
  for (int i = 0; i < 30; ++i) {
    const NodeId node = NodeAt(static_cast<std::size_t>(i % 6));
    run.cluster.changes.push_back({AtSeconds(50 + 70 * i), node, false});
    run.cluster.changes.push_back({AtSeconds(115 + 70 * i), node, true});
  }
  const TestResult result = RunTest(run);
  ASSERT_TRUE(result.status.ok()) << result.status.error().message;
  for (const model::JobRecord& job : result.records) {
    EXPECT_EQ(job.phase.get(), model::JobPhase::kCompleted);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Catalogue, OnMixedCluster,
    testing::Values(Named{"fifo"}, Named{"fifo", "scattered"}, Named{"fjf", "first-fit"},
                    Named{"backfill"}, Named{"backfill:order=shortest", "buddy"},
                    Named{"backfill:reservations=4"}, Named{"sjf"}, Named{"srtf"},
                    Named{"srtf", "buddy"}, Named{"srsf", "scattered"}, Named{"las"},
                    Named{"tiresias"}, Named{"tiresias", "buddy"},
                    Named{"edf", "consolidated:spread=1"}, Named{"themis"},
                    Named{"themis:lease=60", "scattered"}, Named{"drf"}, Named{"tetris"},
                    Named{"ftf"}, Named{"max-min-fairness:round=30", "gandiva"},
                    Named{"makespan:round=30", "gandiva"}, Named{"allox:round=30", "gandiva"}),
    [](const testing::TestParamInfo<Named>& one) { return "case" + std::to_string(one.index); });

// Without preemption the incremental walk places exactly as the walk over all jobs.
TEST(MixedClusterTest, ClassesOfTypesCloseOneByOne) {
  const std::unique_ptr<ExecutionModel> rates =
      profile::OnTypesOf(MixedCluster(), profile::MakeDurationModel());
  for (unsigned seed = 0; seed < 20; ++seed) {
    TestRun run{.jobs = PickyJobs(seed, 120),
                .cluster = MixedCluster(),
                .policy = "sjf",
                .walk = Walk{.preempt = false},
                .rates = rates.get()};
    const TestResult fast = RunTest(run);
    run.plain_walk = true;
    ExpectSameRun(fast, RunTest(run), seed);
  }
}

TEST(MixedClusterTest, TheFastestTypeWithRoomIsTaken) {
  const std::unique_ptr<ExecutionModel> rates =
      profile::OnTypesOf(MixedCluster(), profile::MakeDurationModel());
  const TestResult result = RunTest(
      {.jobs = {MakeJob(0, 8, 100), MakeJob(0, 8, 100), MakeJob(0, 8, 100), MakeJob(1, 4, 10)},
       .cluster = MixedCluster(),
       .rates = rates.get()});
  EXPECT_EQ(result.end(0), 50);
  EXPECT_EQ(result.end(1), 100);
  EXPECT_EQ(result.end(2), 200);
  EXPECT_EQ(result.end(3), 55);  // waits for the first to end
}

TEST(MixedClusterTest, AGangOnSeveralTypesRunsAtThePaceOfTheSlowest) {
  const std::unique_ptr<ExecutionModel> rates =
      profile::OnTypesOf(MixedCluster(), profile::MakeDurationModel());
  TestRun run{.jobs = {MakeJob(0, 16, 100), MakeJob(0, 24, 100), MakeJob(0, 16, 100)},
              .cluster = MixedCluster(),
              .rates = rates.get()};
  run.jobs[2].traits = Accepts({"T4", "V100"});
  const TestResult result = RunTest(run);
  EXPECT_EQ(result.end(0), 100);  // A100 and V100
  EXPECT_EQ(result.end(1), 300);
  EXPECT_EQ(result.end(2), 500);
}

TEST(MixedClusterTest, AnotherClassWaitsForAnotherReason) {
  const std::unique_ptr<ExecutionModel> rates =
      profile::OnTypesOf(MixedCluster(), profile::MakeDurationModel());
  TestRun run{.jobs = {MakeJob(0, 8, 1000), MakeJob(0, 4, 100), MakeJob(0, 4, 100)},
              .cluster = MixedCluster(),
              .policy = "fjf",
              .rates = rates.get(),
              .stop = {.until = AtSeconds(50)}};
  run.jobs[1].traits = Accepts({"A100"});
  const TestResult result = RunTest(run);
  EXPECT_EQ(result.records[1].phase.get(), model::JobPhase::kWaiting);
  EXPECT_EQ(result.records[2].phase.get(), model::JobPhase::kRunning);
  ASSERT_EQ(result.blocked.size(), 1U);
  EXPECT_EQ(result.blocked[0].first, JobAt(1));
  EXPECT_EQ(result.blocked[0].reason, model::WaitReason::kGpus);
}

// Names a GPU of the wrong type.
class Careless final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const override { return "careless"; }
  [[nodiscard]] PolicyTraits traits() const override { return {.may = {.name_gpus = true}}; }
  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* /*memory*/) const override {
    Proposal proposal;
    for (const JobId job : snapshot.jobs->live()) {
      proposal.demands.push_back(
          {.job = job, .gpus = 1, .slices = {{.node = NodeAt(5), .gpus = 1}}});
    }
    return proposal;
  }
};

TEST(MixedClusterTest, AGrantOfAnotherTypeIsAViolation) {
  const std::unique_ptr<ExecutionModel> rates =
      profile::OnTypesOf(MixedCluster(), profile::MakeDurationModel());
  const Careless careless;
  TestRun run{.jobs = {MakeJob(0, 1, 10)},
              .cluster = MixedCluster(),
              .own_policy = &careless,
              .placement = "gandiva",
              .rates = rates.get()};
  run.jobs[0].traits = Accepts({"A100"});
  const TestResult result = RunTest(run);
  ASSERT_FALSE(result.status.ok());
  EXPECT_NE(result.status.error().message.find("is given GPUs of type T4; it runs on A100"),
            std::string::npos)
      << result.status.error().message;
}

// Plans count GPUs as if all were the slowest, so that promises hold wherever jobs come to lie.
TEST(MixedClusterTest, PoliciesThatPromiseKeepTheirPromises) {
  for (unsigned seed = 1; seed < 41; ++seed) {
    const RandomProfiles profiles(seed);
    TestRun run = RandomPromises(seed, profiles);
    run.cluster = MixedCluster();
    const std::unique_ptr<ExecutionModel> rates =
        profile::OnTypesOf(run.cluster, std::make_unique<RandomProfiles>(profiles));
    run.rates = rates.get();
    const TestResult result = RunTest(run);
    ASSERT_TRUE(result.status.ok()) << result.status.error().message;
    EXPECT_GT(ExpectInTime(result), 2) << "seed " << seed;
  }
}

}  // namespace
}  // namespace trainyard
