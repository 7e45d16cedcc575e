// SPDX-License-Identifier: Apache-2.0
// Policy chronus keeps the promises that it makes, whatever the trace, the restart costs and the
// cluster; when GPUs are lost it breaks as many as it must and goes on.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "engine_tests/harness.h"
#include "policies/chronus/chronus.h"
#include "support/sanitized.h"

namespace trainyard {
namespace {

// The policy, and the first promise to each job.
class Witness final : public Policy {
 public:
  explicit Witness(const Policy& policy) : policy_(policy) {}
  [[nodiscard]] std::string_view name() const override { return policy_.name(); }
  [[nodiscard]] PolicyTraits traits() const override { return policy_.traits(); }
  [[nodiscard]] std::unique_ptr<Memory> NewMemory() const override { return policy_.NewMemory(); }
  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* memory) const override {
    Proposal proposal = policy_.Decide(snapshot, memory);
    for (const policies::LeasePromise& promise : policies::PromisesOf(*memory)) {
      promises_.try_emplace(promise.job, promise.deadline);
    }
    return proposal;
  }
  [[nodiscard]] const std::map<JobId, std::optional<TimePoint>>& promises() const {
    return promises_;
  }

 private:
  const Policy& policy_;
  mutable std::map<JobId, std::optional<TimePoint>> promises_;
};

// Up to three deadlines each.
std::vector<JobSpec> JobsWithSoftDeadlines(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<JobSpec> jobs = RandomJobs(seed, 120);
  for (JobSpec& job : jobs) {
    job.best_effort = random() % 8 == 0;
    if (!job.deadline || random() % 2 == 0) {
      continue;
    }
    const auto traits = std::make_shared<JobTraits>();
    TimePoint at = *job.deadline;
    for (const double value : {10.0, 7.0, 2.0}) {
      traits->deadlines.push_back({at, value});
      at += FromSeconds(static_cast<double>(1 + random() % 600));
    }
    job.traits = traits;
  }
  return jobs;
}

TestRun RandomRun(unsigned seed) {
  std::mt19937 random(seed);
  const auto cost = [&random] { return FromSeconds(static_cast<double>(random() % 100) / 10); };
  TestRun run{.jobs = JobsWithSoftDeadlines(seed),
              .cluster = MakeCluster(2 + static_cast<int>(seed % 4), seed % 2 == 0 ? 4 : 8)};
  run.rules.debt = {};
  const Duration start = cost();
  run.overheads = profile::OverheadModel(profile::OverheadTable{
      .fallback = {.start = start, .restart = start, .resize = cost(), .migrate = cost()},
      .models = {}});
  return run;
}

class Promises : public testing::TestWithParam<unsigned> {
 protected:
  const Components policy_ = PolicyNamed(
      GetParam() % 3 == 0 ? "chronus:lease=60,margin=1,solver=never" : "chronus:lease=40,margin=1");
  const Witness witness_{*policy_.policy};
};

TEST_P(Promises, AreKept) {
  TestRun run = RandomRun(GetParam());
  run.own_policy = &witness_;
  const TestResult result = RunTest(run);
  ASSERT_TRUE(result.status.ok()) << result.status.error().message;
  int promised = 0;
  int refused = 0;
  for (std::size_t i = 0; i < result.records.size(); ++i) {
    const model::JobRecord& job = result.records[i];
    EXPECT_EQ(job.phase.get(), model::JobPhase::kCompleted);
    const std::optional<TimePoint> promise = witness_.promises().at(JobAt(i));
    if (promise) {
      EXPECT_LE(job.done, *promise) << job.spec->name;
      ++promised;
    } else if (job.spec->deadline && !job.spec->best_effort) {
      ++refused;
    }
  }
  EXPECT_GT(promised, 5);
  EXPECT_GT(refused, 0);
}

TEST_P(Promises, AreRepeatable) {
  TestRun run = RandomRun(GetParam());
  run.own_policy = policy_.policy.get();
  const TestResult first = RunTest(run);
  EXPECT_EQ(first.digest, RunTest(run).digest);
  EXPECT_EQ(first.digest, RunTest(run, &first.journal).digest);
}

TEST_P(Promises, MayBreakWhenNodesFailButAllJobsComplete) {
  TestRun run = RandomRun(GetParam());
  run.cluster = MakeCluster(4, 4);
  for (int i = 0; i < 6; ++i) {
    const NodeId node = NodeAt(static_cast<std::size_t>(i % 3));
    run.cluster.changes.push_back({AtSeconds(200 + 500 * i), node, false});
    run.cluster.changes.push_back({AtSeconds(450 + 500 * i), node, true});
  }
  run.own_policy = &witness_;
  const TestResult result = RunTest(run);
  ASSERT_TRUE(result.status.ok()) << result.status.error().message;
  for (const model::JobRecord& job : result.records) {
    EXPECT_EQ(job.phase.get(), model::JobPhase::kCompleted) << job.spec->name;
  }
}

INSTANTIATE_TEST_SUITE_P(Random, Promises, testing::Range(12U, 12U + Rounds(12U)));

}  // namespace
}  // namespace trainyard
