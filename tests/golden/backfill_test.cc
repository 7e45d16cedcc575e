// SPDX-License-Identifier: Apache-2.0
// EASY backfilling on real logs: mean bounded slowdown beside what an independent implementation of
// one decision for each instant gives (reference/backfill.md), and FCFS job by job.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "scenario/scenario.h"
#include "support/reference.h"
#include "support/scratch_folder.h"

namespace trainyard {
namespace {

struct Figure {
  std::string log;
  std::string cluster;
  std::string policy;
  double slowdown = 0;
};

void PrintTo(const Figure& one, std::ostream* out) { *out << one.log << " " << one.policy; }

// max(1, (wait + run) / max(run, 10 s)), the mean over all jobs.
double MeanBoundedSlowdown(const results::RunResult& run) {
  constexpr double kShortest = 10;
  double sum = 0;
  for (const results::JobResult& job : run.jobs) {
    const double ran = Seconds(*job.spec->duration);
    EXPECT_TRUE(job.end) << job.spec->name;
    const double jct = Seconds(job.end.value_or(kEndOfTime) - job.spec->submit);
    sum += std::max(1.0, jct / std::max(ran, kShortest));
  }
  return sum / static_cast<double>(run.jobs.size());
}

class BackfillLog : public testing::TestWithParam<Figure> {};

TEST_P(BackfillLog, HasThePublishedSlowdown) {
  TRAINYARD_NEEDS_REFERENCE();
  const Figure& figure = GetParam();
  const ScratchFolder scratch;
  const Result<scenario::Inputs> inputs =
      scenario::ReadInputs({.trace = Reference() + "/data/backfill/" + figure.log + ".swf.gz",
                            .format = "swf",
                            .cluster = figure.cluster});
  ASSERT_TRUE(inputs.ok()) << inputs.error().message;
  const Result<results::RunResult> run = scenario::RunScenario(
      inputs.value(),
      {.names = {.preset = scratch.Write("free.toml", "[debt]\ncharge = \"none\"\n"),
                 .policy = figure.policy},
       .keep_timeline = false});
  ASSERT_TRUE(run.ok()) << run.error().message;
  EXPECT_NEAR(MeanBoundedSlowdown(run.value()), figure.slowdown, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(
    Logs, BackfillLog,
    testing::Values(Figure{"kth-sp2", "100x1", "fifo", 6814.973310},
                    Figure{"kth-sp2", "100x1", "backfill", 92.687654},
                    Figure{"kth-sp2", "100x1", "backfill:order=shortest", 69.393636},
                    Figure{"kth-sp2", "100x1", "backfill:times=estimate", 71.722385},
                    Figure{"sdsc-sp2-4606", "128x1", "fifo", 139.594804},
                    Figure{"sdsc-sp2-4606", "128x1", "backfill", 18.005964},
                    Figure{"sdsc-sp2-4606", "128x1", "backfill:order=shortest", 17.523168},
                    Figure{"sdsc-sp2-4606", "128x1", "backfill:times=estimate", 14.171618}),
    [](const auto& tested) { return "case" + std::to_string(tested.index); });

}  // namespace
}  // namespace trainyard
