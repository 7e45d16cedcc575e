// SPDX-License-Identifier: Apache-2.0
// trainyard trace: validate, stats; convert and generate have files of their own.
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/try.h"
#include "cli/commands.h"
#include "cli/output_paths.h"
#include "cli/reading.h"
#include "io/bad_rows.h"
#include "profile/throughput_table.h"
#include "results/trace_stats/trace_statistics.h"
#include "trace/clusters/cluster_file.h"
#include "trace/trace.h"

namespace trainyard::cli {
namespace {

struct TraceCommandOptions {
  std::string trace;
  trace::TraceOptions reading;
  std::string cluster;
  std::string profiles;
  bool json = false;
  std::string csv;
  std::string plots;
};

Status CheckModel(const JobSpec& job, std::string_view where,
                  const profile::ThroughputTable& profiles, std::string_view name) {
  if (profiles.Find(job.model, job.batch_size) >= 0) {
    return {};
  }
  return BadInput(
      fmt::format("{}: model '{}' with batch size {} is not in {}; expected one that it has", where,
                  job.model, job.batch_size, name));
}

// What the jobs are checked against.
struct Checks {
  std::optional<Cluster> cluster;
  std::optional<profile::ThroughputTable> profiles;
};

Result<Checks> ReadChecks(const TraceCommandOptions& options) {
  Checks checks;
  if (!options.cluster.empty()) {
    ASSIGN_OR_RETURN(Cluster cluster, trace::ReadCluster(options.cluster));
    checks.cluster = std::move(cluster);
  }
  if (!options.profiles.empty()) {
    ASSIGN_OR_RETURN(profile::ThroughputTable profiles,
                     profile::ThroughputTable::Read(options.profiles));
    checks.profiles = std::move(profiles);
  }
  return checks;
}

Status Validate(const TraceCommandOptions& options) {
  ASSIGN_OR_RETURN(const Checks checks, ReadChecks(options));
  const auto& [cluster, profiles] = checks;
  io::BadRows bad(options.trace, "");
  const auto check = [&, &cluster = cluster, &profiles = profiles](const JobSpec& job,
                                                                   std::int64_t line) -> Status {
    if (!cluster && !profiles) {
      return {};
    }
    const std::string where = fmt::format("{}:{}", options.trace, line);
    Status status = cluster ? trace::CheckFits(job, where, *cluster) : Status();
    status = status.ok() && profiles ? CheckModel(job, where, *profiles, options.profiles) : status;
    return status.ok() ? status : bad.Add(line, status.error());
  };
  std::vector<trace::RowGroup> skipped;
  const Result<trace::TraceFacts> read = trace::ForEachJob(
      options.trace, options.reading,
      {.on_job = check,
       .on_skipped = [&](const trace::RowGroup& rows) { skipped.push_back(rows); }});
  if (!bad.empty()) {
    return bad.Take(read.ok() ? Status() : read.error());
  }
  ASSIGN_OR_RETURN(const trace::TraceFacts facts, read);
  ReportReading(facts, skipped);
  fmt::print("{}: {} jobs, format {}, {} rows skipped\n", options.trace, facts.jobs, facts.format,
             facts.skipped);
  if (!facts.origin.empty()) {
    fmt::print("  time 0 is {}\n", facts.origin);
  }
  return {};
}

Result<results::TraceSource> SourceOf(const TraceCommandOptions& options) {
  results::TraceSource source;
  if (!options.cluster.empty()) {
    ASSIGN_OR_RETURN(const Cluster cluster, trace::ReadCluster(options.cluster));
    source.cluster_gpus = cluster.total_gpus();
  }
  return source;
}

Status CheckFiles(const TraceCommandOptions& options) {
  std::vector<NamedPath> outputs;
  if (!options.csv.empty()) {
    AddPaths("--csv", results::FilesOfStatistics(options.csv), outputs);
  }
  if (!options.plots.empty()) {
    AddPaths("--plots", results::FilesOfFigures(options.plots), outputs);
  }
  return CheckOutputs(
      {{.name = "TRACE", .path = options.trace}, {.name = "--cluster", .path = options.cluster}},
      outputs);
}

Status Stats(const TraceCommandOptions& options) {
  RETURN_IF_ERROR(CheckFiles(options));
  ASSIGN_OR_RETURN(results::TraceSource source, SourceOf(options));
  results::TraceStatistics statistics;
  std::vector<trace::RowGroup> skipped;
  const auto add = [&](const JobSpec& job, std::int64_t /*line*/) -> Status {
    statistics.Add(job);
    return {};
  };
  const auto skip = [&](const trace::RowGroup& rows) {
    statistics.AddLeftOut(rows.why, static_cast<std::size_t>(rows.rows));
    skipped.push_back(rows);
  };
  ASSIGN_OR_RETURN(trace::TraceFacts facts, trace::ForEachJob(options.trace, options.reading,
                                                              {.on_job = add, .on_skipped = skip}));
  ReportReading(facts, skipped);
  statistics.SetOrigin(facts.origin);
  source.facts = std::move(facts);
  if (options.json) {
    fmt::print("{}\n", results::StatisticsJson(statistics, source));
  } else {
    fmt::print("{}", results::StatisticsText(statistics, source));
  }
  if (!options.csv.empty()) {
    RETURN_IF_ERROR(results::WriteStatisticsCsv(statistics, source, options.csv));
  }
  return options.plots.empty() ? Status()
                               : results::DrawStatistics(statistics, source, options.plots);
}

void AddReading(CLI::App& command, TraceCommandOptions& options) {
  command
      .add_option("TRACE", options.trace,
                  "job trace (CSV, JSON, a folder of PAI; may be packed with gzip or zstd)")
      ->required();
  command.add_option("--format", options.reading.format, "trace format (default: recognised)");
  command.add_option("--cluster", options.cluster, "cluster file, or NODESxGPUS");
  AddReadingOptions(command, options.reading);
}

}  // namespace

void AddTrace(CLI::App& app, Command& chosen) {
  CLI::App* trace = app.add_subcommand("trace", "check, describe, convert and make job traces");
  trace->footer(ListOfFormats);
  trace->require_subcommand(1);
  auto options = std::make_shared<TraceCommandOptions>();
  CLI::App* validate = trace->add_subcommand("validate", "read a trace and say what is wrong");
  AddReading(*validate, *options);
  validate->add_option("--profiles", options->profiles, "check that all models have a profile");
  validate->callback([options, &chosen] { chosen.run = [options] { return Validate(*options); }; });
  CLI::App* stats = trace->add_subcommand("stats", "arrivals, sizes, durations and load");
  AddReading(*stats, *options);
  stats->add_flag("--json", options->json, "print JSON");
  stats->add_option("--csv", options->csv, "folder for tables as CSV");
  stats->add_option("--plots", options->plots, "folder for plots as SVG, drawn by gnuplot");
  stats->callback([options, &chosen] { chosen.run = [options] { return Stats(*options); }; });
  AddConvert(*trace, chosen);
  AddGenerate(*trace, chosen);
  AddGenerateProfiles(*trace, chosen);
  AddGenerateFailures(*trace, chosen);
}

}  // namespace trainyard::cli
