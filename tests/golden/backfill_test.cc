// SPDX-License-Identifier: Apache-2.0
// EASY backfilling and FCFS on real logs: mean bounded slowdown beside what an independent
// implementation of one decision for each instant gives (reference/backfill.md).
#include <gtest/gtest.h>

#include "results/metrics/metrics.h"
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
  const results::Metrics metrics = results::Measure(run.value());
  EXPECT_EQ(metrics.completed, metrics.jobs);
  EXPECT_NEAR(metrics.bounded_slowdown_mean.value(), figure.slowdown, 1e-6);
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
