// SPDX-License-Identifier: Apache-2.0
// Backfilling on real logs (reference/backfill.md): under the preset of the published simulator job
// by job, and in sound mode the mean bounded slowdown beside what an independent implementation of
// one decision for each instant gives.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/try.h"
#include "io/csv_reader.h"
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

Result<results::RunResult> RunLog(const std::string& log, const std::string& cluster,
                                  const scenario::PresetRequest& names) {
  ASSIGN_OR_RETURN(const scenario::Inputs inputs,
                   scenario::ReadInputs({.trace = Reference() + "/data/backfill/" + log + ".swf.gz",
                                         .format = "swf",
                                         .cluster = cluster}));
  return scenario::RunScenario(inputs, {.names = names, .keep_timeline = false});
}

class BackfillLog : public testing::TestWithParam<Figure> {};

TEST_P(BackfillLog, HasThePublishedSlowdown) {
  TRAINYARD_NEEDS_REFERENCE();
  const Figure& figure = GetParam();
  const ScratchFolder scratch;
  const Result<results::RunResult> run =
      RunLog(figure.log, figure.cluster,
             {.preset = scratch.Write("free.toml", "[debt]\ncharge = \"none\"\n"),
              .policy = figure.policy});
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

// ------------------------------------------------------------------------------------ job by job

// All rows of the manifest.
Result<std::vector<Figure>> PublishedCases() {
  ASSIGN_OR_RETURN(const io::CsvTable table,
                   io::CsvTable::Open(Reference() + "/golden/backfill/manifest.csv"));
  std::vector<Figure> cases;
  RETURN_IF_ERROR(table.ForEach([&](const io::CsvRow& row) -> Status {
    ASSIGN_OR_RETURN(const double slowdown, row.Number(4, 0));
    cases.push_back({std::string(row.Text(0)), std::string(row.Text(1)) + "x1",
                     std::string(row.Text(2)), slowdown});
    return {};
  }));
  return cases;
}

// Seconds, by name.
Result<std::map<std::string, double>> PublishedWaits(const Figure& one) {
  ASSIGN_OR_RETURN(const io::CsvTable table,
                   io::CsvTable::Open(Reference() + "/golden/backfill/" + one.log + "." +
                                      one.policy + ".csv.gz"));
  std::map<std::string, double> waits;
  RETURN_IF_ERROR(table.ForEach([&](const io::CsvRow& row) -> Status {
    ASSIGN_OR_RETURN(waits[std::string(row.Text(0))], row.Number(1, 0));
    return {};
  }));
  return waits;
}

void ExpectEqual(const Figure& one) {
  const Result<results::RunResult> run =
      RunLog(one.log, one.cluster, {.preset = "backfill", .policy = one.policy});
  ASSERT_TRUE(run.ok()) << run.error().message;
  const Result<std::map<std::string, double>> waits = PublishedWaits(one);
  ASSERT_TRUE(waits.ok()) << waits.error().message;
  ASSERT_EQ(run.value().jobs.size(), waits.value().size());
  std::size_t other = 0;
  for (const results::JobResult& job : run.value().jobs) {
    const auto published = waits.value().find(job.spec->name);
    ASSERT_NE(published, waits.value().end()) << job.spec->name;
    other += job.start && Seconds(*job.start - job.spec->submit) == published->second ? 0 : 1;
  }
  EXPECT_EQ(other, 0U) << "jobs that start at another time";
  EXPECT_NEAR(results::Measure(run.value()).bounded_slowdown_mean.value(), one.slowdown, 1e-6);
}

// x and y end at 50, each before its limit. After the end of x alone there is no place for h, and w
// is done before y must be.
TEST(PublishedBackfillTest, EndsOfAnInstantAreDecidedOneAfterTheOther) {
  const ScratchFolder scratch;
  const Result<scenario::Inputs> inputs =
      scenario::ReadInputs({.trace = scratch.Write("t.csv",
                                                   "job_id,submit_time,gpus,duration,time_limit\n"
                                                   "x,0,3,50,100\ny,0,1,50,100\n"
                                                   "h,1,4,10,10\nw,2,3,10,10\n"),
                            .cluster = "4x1"});
  ASSERT_TRUE(inputs.ok()) << inputs.error().message;
  const auto starts = [&](const scenario::PresetRequest& names) {
    const Result<results::RunResult> run = scenario::RunScenario(inputs.value(), {.names = names});
    std::string text = run.ok() ? "" : run.error().message;
    for (std::size_t i = 0; run.ok() && i < run.value().jobs.size(); ++i) {
      const results::JobResult& job = run.value().jobs[i];
      text += fmt::format("{} {} ", job.spec->name, Seconds(job.start.value().time_since_epoch()));
    }
    return text;
  };
  const std::string free = scratch.Write("free.toml", "[debt]\ncharge = \"none\"\n");
  EXPECT_EQ(starts({.preset = "backfill", .policy = "easy"}), "x 0 y 0 h 60 w 50 ");
  EXPECT_EQ(starts({.preset = free, .policy = "backfill"}), "x 0 y 0 h 50 w 60 ");
  EXPECT_EQ(starts({.preset = "backfill", .policy = "conservative"}), "x 0 y 0 h 60 w 50 ");
}

TEST(PublishedBackfillTest, AllJobsStartWhenTheyDidThere) {
  TRAINYARD_NEEDS_REFERENCE();
  const Result<std::vector<Figure>> cases = PublishedCases();
  ASSERT_TRUE(cases.ok()) << cases.error().message;
  ASSERT_GE(cases.value().size(), 10U);
  for (const Figure& one : cases.value()) {
    SCOPED_TRACE(testing::PrintToString(one));
    ExpectEqual(one);
  }
}

}  // namespace
}  // namespace trainyard
