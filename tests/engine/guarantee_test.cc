// SPDX-License-Identifier: Apache-2.0
// The promise of policy elasticflow: whoever is admitted is not late, whatever the trace, the
// profiles, the restart costs and the shape of the cluster.
#include <gtest/gtest.h>

#include "engine_tests/harness.h"
#include "engine_tests/random_profiles.h"

namespace trainyard {
namespace {

class Guarantee : public testing::TestWithParam<unsigned> {};

TEST_P(Guarantee, NoAdmittedJobIsLate) {
  const RandomProfiles rates(GetParam());
  const TestRun run = RandomPromises(GetParam(), rates);
  const TestResult result = RunTest(run);
  ASSERT_TRUE(result.status.ok()) << result.status.error().message;
  int admitted = 0;
  int rejected = 0;
  for (const model::JobRecord& job : result.records) {
    if (job.phase.get() == model::JobPhase::kRejected) {
      EXPECT_TRUE(job.spec->deadline && !job.spec->best_effort) << job.spec->name;
      ++rejected;
      continue;
    }
    ASSERT_EQ(job.phase.get(), model::JobPhase::kCompleted) << job.spec->name;
    if (job.spec->deadline && !job.spec->best_effort) {
      ++admitted;
      EXPECT_LE(job.done, *job.spec->deadline) << job.spec->name;
    }
  }
  EXPECT_GT(admitted, 5);
  EXPECT_GT(rejected, 0);
}

// A promise counts the longest fetch, so that it holds wherever the job comes to lie.
TEST_P(Guarantee, NorOneThatMustFetchItsData) {
  const RandomProfiles rates(GetParam());
  TestRun run = RandomPromises(GetParam(), rates);
  run.placement = GetParam() % 2 == 0 ? "consolidated" : "consolidated:locality=1";
  for (std::size_t i = 0; i < run.cluster.nodes.size(); ++i) {
    run.cluster.nodes[i].cache_mib = 50'000;
    run.cluster.nodes[i].remote_kbps = 400'000 * static_cast<std::int64_t>(1 + i);
  }
  for (std::size_t i = 0; i < run.jobs.size(); ++i) {
    JobTraits traits;
    traits.data_set = DataSet{.name = std::to_string(i % 7),
                              .mib = 4'000 * static_cast<std::int64_t>(1 + i % 7),
                              .home = {}};
    run.jobs[i].traits = std::make_shared<const JobTraits>(std::move(traits));
  }
  const TestResult result = RunTest(run);
  ASSERT_TRUE(result.status.ok()) << result.status.error().message;
  EXPECT_GT(ExpectInTime(result), 2);
}

TEST_P(Guarantee, NorOneThatIsPlannedWithSlack) {
  const RandomProfiles rates(GetParam());
  TestRun run = RandomPromises(GetParam(), rates);
  run.policy = "elasticflow:slack=300";
  const TestResult result = RunTest(run);
  ASSERT_TRUE(result.status.ok()) << result.status.error().message;
  EXPECT_GT(ExpectInTime(result), 2);
  // The slack is there when a job starts; what restarts cost comes out of it later.
  for (const model::JobRecord& job : result.records) {
    if (job.phase.get() == model::JobPhase::kCompleted && job.spec->deadline &&
        !job.spec->best_effort && job.preemptions + job.resizes + job.migrations == 0) {
      EXPECT_LE(job.done, *job.spec->deadline - FromSeconds(300)) << job.spec->name;
    }
  }
}

TEST_P(Guarantee, ARunIsRepeatable) {
  const RandomProfiles rates(GetParam());
  const TestRun run = RandomPromises(GetParam(), rates);
  const TestResult first = RunTest(run);
  EXPECT_EQ(first.digest, RunTest(run).digest);
  EXPECT_EQ(first.digest, RunTest(run, &first.journal).digest);
}

// Without admission everybody is served; who would have been admitted alone is often in time.
TEST_P(Guarantee, WithoutAdmissionAllJobsComplete) {
  const RandomProfiles rates(GetParam());
  TestRun run = RandomPromises(GetParam(), rates);
  run.admission = "all";
  const TestResult result = RunTest(run);
  ASSERT_TRUE(result.status.ok()) << result.status.error().message;
  for (const model::JobRecord& job : result.records) {
    EXPECT_EQ(job.phase.get(), model::JobPhase::kCompleted) << job.spec->name;
  }
}

// Nodes fail and return: promises may break, but nothing is lost and nobody is granted a GPU that
// is not there.
TEST_P(Guarantee, NodeFailuresAreSurvived) {
  const RandomProfiles rates(GetParam());
  TestRun run = RandomPromises(GetParam(), rates);
  run.cluster = MakeCluster(4, 4);
  for (int i = 0; i < 6; ++i) {
    const NodeId node = NodeAt(static_cast<std::size_t>(i % 3));
    run.cluster.changes.push_back({AtSeconds(500 + 3000 * i), node, false});
    run.cluster.changes.push_back({AtSeconds(2000 + 3000 * i), node, true});
  }
  const TestResult result = RunTest(run);
  ASSERT_TRUE(result.status.ok()) << result.status.error().message;
  for (const model::JobRecord& job : result.records) {
    EXPECT_TRUE(job.phase.get() == model::JobPhase::kCompleted ||
                job.phase.get() == model::JobPhase::kRejected)
        << job.spec->name;
  }
}

INSTANTIATE_TEST_SUITE_P(Random, Guarantee, testing::Range(1U, 101U));

}  // namespace
}  // namespace trainyard
