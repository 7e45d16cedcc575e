// SPDX-License-Identifier: Apache-2.0
// Whole runs of the published Pollux (reference/pollux.md 5, 9): its jobs are random, so that means
// over seeds are compared, within the tolerances of golden/pollux/README.md.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "base/try.h"
#include "results/metrics/metrics.h"
#include "scenario/scenario.h"
#include "support/reference.h"

namespace trainyard {
namespace {

struct Outcome {
  int jobs = 0;
  int completed = 0;
  int on_time = 0;
  double mean_jct = 0;
  double last_end = 0;
  double moves = 0;  // after first starts
  bool whole_ends = true;
  double least_ncf = 1e9;  // GPU-seconds
};

Result<Outcome> Simulate(const std::string& workload, const std::string& cluster,
                         const scenario::PresetRequest& names) {
  ASSIGN_OR_RETURN(
      const scenario::Inputs inputs,
      scenario::ReadInputs({.trace = Reference() + "/data/pollux/workloads/" + workload + ".csv",
                            .format = "sia",
                            .cluster = cluster,
                            .profiles = Reference() + "/data/pollux"}));
  ASSIGN_OR_RETURN(const results::RunResult run,
                   scenario::RunScenario(inputs, {.names = names, .keep_timeline = false}));
  Outcome outcome{.jobs = static_cast<int>(run.jobs.size())};
  for (const results::JobResult& job : run.jobs) {
    if (job.outcome != results::Outcome::kCompleted) {
      continue;
    }
    ++outcome.completed;
    const double end = Seconds(*job.end);
    outcome.mean_jct += end - Seconds(job.spec->submit);
    outcome.last_end = std::max(outcome.last_end, end);
    outcome.moves += job.preemptions + job.migrations + job.resizes;
    outcome.on_time += job.spec->deadline && *job.end <= *job.spec->deadline ? 1 : 0;
    outcome.whole_ends = outcome.whole_ends && end == std::floor(end);
    if (job.spec->model == "ncf") {
      outcome.least_ncf = std::min(outcome.least_ncf, job.attained_service);
    }
  }
  outcome.mean_jct /= outcome.completed;
  return outcome;
}

Outcome Done(const std::string& workload, const std::string& cluster,
             const scenario::PresetRequest& names) {
  const Result<Outcome> outcome = Simulate(workload, cluster, names);
  EXPECT_TRUE(outcome.ok()) << outcome.error().message;
  return outcome.ok() ? outcome.value() : Outcome();
}

std::string Seeded(int seed) { return "pollux:seed=" + std::to_string(seed); }

TEST(PolluxRunsTest, TwelveJobsOnFourNodesGoAsPublished) {
  TRAINYARD_NEEDS_REFERENCE();
  double jct = 0;
  double last = 0;
  double moves = 0;
  constexpr int kSeeds = 3;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const Outcome outcome = Done("small12", "4x4", {.preset = Seeded(seed)});
    EXPECT_EQ(outcome.completed, 12);
    EXPECT_EQ(outcome.on_time, 12);
    EXPECT_TRUE(outcome.whole_ends);
    EXPECT_EQ(outcome.least_ncf, 77) << "30 s to start, and 47 s";
    jct += outcome.mean_jct / kSeeds;
    last += outcome.last_end / kSeeds;
    moves += outcome.moves / kSeeds;
  }
  EXPECT_NEAR(jct, 3035, 75);
  EXPECT_NEAR(last, 6200, 80);
  EXPECT_NEAR(moves, 40, 10);
}

// A minute of CPU.
TEST(PolluxRunsTest, SlowTheSixthWorkloadGoesAsPublished) {
  TRAINYARD_NEEDS_REFERENCE();
  const Outcome outcome = Done("osdi21-6", "16x4", {.preset = "pollux"});
  EXPECT_EQ(outcome.completed, 160);
  EXPECT_NEAR(outcome.mean_jct, 2470, 0.05 * 2470);
}

// Five minutes of CPU.
TEST(PolluxRunsTest, SlowTheTraceOfElasticFlowGoesAsPublished) {
  TRAINYARD_NEEDS_REFERENCE();
  const Outcome outcome = Done("fig8a_195", "16x4", {.preset = "pollux"});
  EXPECT_EQ(outcome.completed, 195);
  EXPECT_NEAR(outcome.mean_jct, 71150, 0.03 * 71150);
  EXPECT_NEAR(static_cast<double>(outcome.on_time) / outcome.jobs, 0.52, 0.03);
}

// Any policy may have these trainings; that which knows what they gain is better than one that does
// not.
TEST(PolluxRunsTest, PolluxEndsTrainingsSoonerThanAnOrderOfRequests) {
  TRAINYARD_NEEDS_REFERENCE();
  const Outcome pollux = Done("small12", "4x4", {.policy = "pollux"});
  const Outcome fifo = Done("small12", "4x4", {.policy = "fifo"});
  EXPECT_EQ(pollux.completed, 12);
  EXPECT_EQ(fifo.completed, 12);
  EXPECT_LT(pollux.mean_jct, fifo.mean_jct);
  EXPECT_LT(pollux.mean_jct, 3035 + 75);
}

}  // namespace
}  // namespace trainyard
