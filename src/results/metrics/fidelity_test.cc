// SPDX-License-Identifier: Apache-2.0
#include "results/metrics/fidelity.h"

#include <gtest/gtest.h>

#include "results/write/output.h"
#include "support/hand_made_run.h"
#include "support/scratch_folder.h"

namespace trainyard::results {
namespace {

// A job with one GPU, submitted at 0: completed after `jct` seconds, or rejected.
struct Job {
  std::string name;
  std::optional<double> jct;
  double start = 0;
};

class FidelityTest : public testing::Test {
 protected:
  std::string Run(const std::string& name, const std::vector<Job>& jobs) {
    std::vector<JobSpec> specs;
    specs.reserve(jobs.size());
    for (const Job& job : jobs) {
      specs.push_back({.name = job.name});
    }
    RunResult run = RunOf(std::move(specs));
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      JobResult& result = run.jobs[i];
      result.outcome = jobs[i].jct ? Outcome::kCompleted : Outcome::kRejected;
      if (jobs[i].jct) {
        result.start = AtSeconds(jobs[i].start);
        result.end = result.logged = AtSeconds(*jobs[i].jct);
      }
    }
    const std::string folder = scratch_.path() + "/" + name;
    EXPECT_TRUE(WriteRun(run, folder).ok());
    return folder;
  }
  ScratchFolder scratch_;
};

TEST_F(FidelityTest, JobsAreComparedByTheirIdWhateverTheirOrder) {
  const Result<Fidelity> compared =
      CompareRuns(Run("a", {{"x", 100, 1}, {"y", 200}, {"z", {}}}),
                  Run("b", {{"y", 206}, {"x", 100.0004, 1}, {"z", 5}}));
  ASSERT_TRUE(compared.ok()) << compared.error().message;
  const Fidelity& fidelity = compared.value();
  EXPECT_EQ(fidelity.rows.size(), 3U);
  EXPECT_EQ(fidelity.rows[0].queueing_delay_a, 1);
  EXPECT_EQ(fidelity.same_outcome, 2);
  EXPECT_EQ(fidelity.same_jct, 1);
  EXPECT_DOUBLE_EQ(*fidelity.jct_mean_a, 150);
  EXPECT_NEAR(*fidelity.jct_mean_b, 103.6668, 1e-4);
}

TEST_F(FidelityTest, RunsOfOtherJobsAreRefused) {
  const std::string a = Run("a", {{"x", 100, 1}});
  const Result<Fidelity> missing = CompareRuns(a, Run("b", {{"y", 100, 1}}));
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message.find("has no job 'x'"), std::string::npos);
  const Result<Fidelity> more = CompareRuns(a, Run("c", {{"x", 1}, {"y", 1}}));
  ASSERT_FALSE(more.ok());
  EXPECT_NE(more.error().message.find("has 2 jobs"), std::string::npos);
  EXPECT_FALSE(CompareRuns(a, a + "/nothing").ok());
}

}  // namespace
}  // namespace trainyard::results
