// SPDX-License-Identifier: Apache-2.0
// Runs of Gavel's simulator (OSDI'20) under its preset: golden/gavel/manifest.csv. Those that need
// no solver job by job; the others by mean JCT and makespan, since their optima are not unique.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "io/csv_reader.h"
#include "results/metrics/run_result.h"
#include "scenario/scenario.h"
#include "support/reference.h"
#include "support/scratch_folder.h"

namespace trainyard {
namespace {

struct GavelRun {
  std::string trace;
  std::string cluster;  // "4:4:4": v100, p100, k80
  std::string policy;
  std::string kind;
  int jobs = 0;
  double mean_jct = 0;
  double makespan = 0;
  std::string file;
};

void PrintTo(const GavelRun& run, std::ostream* out) {
  *out << run.trace << " " << run.cluster << " " << run.policy << " " << run.kind;
}

std::vector<GavelRun> GavelManifest() {
  std::vector<GavelRun> runs;
  const Result<io::CsvTable> table = io::CsvTable::Open(Reference() + "/golden/gavel/manifest.csv");
  if (!table.ok()) {
    return runs;
  }
  const Status read = table.value().ForEach([&](const io::CsvRow& row) -> Status {
    const auto text = [&](const char* column) { return std::string(row.Text(row.Column(column))); };
    runs.push_back({text("trace"), text("cluster"), text("policy"), text("kind"),
                    static_cast<int>(*base::ToNumber(text("jobs"))),
                    *base::ToNumber(text("mean_jct_s")), *base::ToNumber(text("makespan_s")),
                    text("file")});
    return {};
  });
  EXPECT_TRUE(read.ok());
  return runs;
}

std::vector<GavelRun> RunsOf(bool exact) {
  std::vector<GavelRun> runs = GavelManifest();
  std::erase_if(runs, [exact](const GavelRun& run) { return (run.kind == "exact") != exact; });
  return runs;
}

std::string ClusterText(const std::string& counts) {
  const std::vector<std::string> types{"v100", "p100", "k80"};
  std::string text;
  std::size_t type = 0;
  for (const std::string_view count : base::Split(counts, ":")) {
    text +=
        fmt::format("[[nodes]]\ncount = {}\ngpus = 1\ngpu_type = \"{}\"\n", count, types[type++]);
  }
  return text;
}

Result<results::RunResult> RunGavel(const GavelRun& run) {
  const ScratchFolder scratch;
  ASSIGN_OR_RETURN(const scenario::Inputs inputs,
                   scenario::ReadInputs(
                       {.trace = Reference() + "/data/gavel/" + run.trace + ".trace.gz",
                        .format = "gavel",
                        .cluster = scratch.Write("cluster.toml", ClusterText(run.cluster)),
                        .profiles = Reference() + "/data/gavel/simulation_throughputs.csv.gz"}));
  return scenario::RunScenario(
      inputs, {.names = {.preset = "gavel", .policy = run.policy}, .keep_timeline = false});
}

bool IsClose(double value, double expected) {
  return std::abs(value - expected) <= 1e-6 + 1e-9 * std::abs(expected);
}

std::string TestName(const testing::TestParamInfo<GavelRun>& info) {
  std::string name =
      info.param.trace + "_" + info.param.cluster + "_" + info.param.policy + "_" + info.param.kind;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == ':' || c == '.'; }, '_');
  return name;
}

class ExactGavelRun : public testing::TestWithParam<GavelRun> {};

TEST_P(ExactGavelRun, EndsEveryJobAsPublished) {
  const Result<results::RunResult> run = RunGavel(GetParam());
  ASSERT_TRUE(run.ok()) << run.error().message;
  std::map<std::string, const results::JobResult*> jobs;
  for (const results::JobResult& job : run.value().jobs) {
    jobs[job.spec->name] = &job;
  }
  const Result<io::CsvTable> table =
      io::CsvTable::Open(Reference() + "/golden/gavel/" + GetParam().file);
  ASSERT_TRUE(table.ok()) << table.error().message;
  int compared = 0;
  int different = 0;
  const Status read = table.value().ForEach([&](const io::CsvRow& row) -> Status {
    const std::string name(row.Text(row.Column("job_id")));
    const std::optional<double> end = base::ToNumber(row.Text(row.Column("end_s")));
    const auto job = jobs.find(name);
    const bool equal = job != jobs.end() &&
                       (end ? job->second->logged && IsClose(Seconds(*job->second->logged), *end)
                            : job->second->outcome != results::Outcome::kCompleted);
    constexpr int kShown = 3;
    if (!equal && ++different <= kShown) {
      ADD_FAILURE() << "job " << name << " ends at "
                    << (job != jobs.end() && job->second->logged ? Seconds(*job->second->logged)
                                                                 : -1.0)
                    << ", expected " << end.value_or(-1);
    }
    ++compared;
    return {};
  });
  EXPECT_TRUE(read.ok());
  EXPECT_EQ(compared, GetParam().jobs);
  EXPECT_EQ(different, 0);
}

INSTANTIATE_TEST_SUITE_P(Published, ExactGavelRun, testing::ValuesIn(RunsOf(true)), TestName);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ExactGavelRun);

// ---------------------------------------------------------------------------------- with a solver

// How far mean JCT and makespan may be off, relative: what another solver, or another order of the
// same rows and columns, does to the published program.
struct Within {
  double mean_jct = 0;
  double makespan = 0;
};
Within TolerancesOf(const GavelRun& run) {
  constexpr double kSmall = 0.25;
  constexpr int kFewJobs = 60;
  const bool any_order = run.policy.starts_with("min_total_duration");
  const bool blind = !run.policy.ends_with("_perf") && !run.policy.ends_with("_packed");
  const double most = blind ? 0.20 : 0.10;
  const double none = std::numeric_limits<double>::infinity();
  if (run.jobs < kFewJobs) {
    return {any_order ? none : kSmall, any_order ? kSmall : none};
  }
  return {any_order ? none : most, most};
}

struct MeasuredRun {
  double mean_jct = 0;
  double makespan = 0;
};
MeasuredRun MeasureGavel(const results::RunResult& run) {
  MeasuredRun measured;
  int ended = 0;
  for (const results::JobResult& job : run.jobs) {
    if (job.outcome == results::Outcome::kCompleted && job.logged) {
      measured.mean_jct += Seconds(*job.logged - job.spec->submit);
      measured.makespan = std::max(measured.makespan, Seconds(*job.logged));
      ++ended;
    }
  }
  measured.mean_jct /= std::max(ended, 1);
  return measured;
}

// Each within the tolerance of one of the two kinds of solver that were run.
TEST(SolvedGavelRuns, HaveTheMeanAndMakespanOfOneOfThePublishedSolvers) {
  TRAINYARD_NEEDS_REFERENCE();
  std::map<std::string, std::vector<GavelRun>> cases;
  for (const GavelRun& run : RunsOf(false)) {
    cases[run.trace + " " + run.cluster + " " + run.policy].push_back(run);
  }
  for (const auto& [name, runs] : cases) {
    const Result<results::RunResult> result = RunGavel(runs.front());
    ASSERT_TRUE(result.ok()) << name << ": " << result.error().message;
    const MeasuredRun here = MeasureGavel(result.value());
    MeasuredRun off{std::numeric_limits<double>::infinity(),
                    std::numeric_limits<double>::infinity()};
    std::string shown;
    for (const GavelRun& run : runs) {
      const double mean_off = here.mean_jct / run.mean_jct - 1;
      const double makespan_off = here.makespan / run.makespan - 1;
      shown +=
          fmt::format(" {}: {:+.1f} % {:+.1f} %", run.kind, 100 * mean_off, 100 * makespan_off);
      off = {std::min(off.mean_jct, std::abs(mean_off)),
             std::min(off.makespan, std::abs(makespan_off))};
    }
    fmt::print("{:<56} {:>8.0f} {:>9.0f} {}\n", name, here.mean_jct, here.makespan, shown);
    const Within within = TolerancesOf(runs.front());
    EXPECT_LE(off.mean_jct, within.mean_jct) << name << ", mean JCT:" << shown;
    EXPECT_LE(off.makespan, within.makespan) << name << ", makespan:" << shown;
  }
}

TEST(ExactGavelRuns, AreInTheManifest) {
  TRAINYARD_NEEDS_REFERENCE();
  EXPECT_EQ(RunsOf(true).size(), 44);
}

}  // namespace
}  // namespace trainyard
