// SPDX-License-Identifier: Apache-2.0
#include "cli/run_options.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/text.h"
#include "base/try.h"
#include "cli/numbers.h"
#include "cli/reading.h"
#include "results/write/json.h"
#include "results/write/output.h"
#include "results/write/table.h"
#include "scenario/unstated_inputs.h"

namespace trainyard::cli {
namespace {

Result<world::StopRule> StopRuleOf(const RunOptions& options, const scenario::Inputs& inputs) {
  world::StopRule stop;
  if (options.until) {
    stop.until = AtSeconds(*options.until);
  }
  if (!options.track.empty()) {
    ASSIGN_OR_RETURN(world::TrackedJobs tracked,
                     scenario::ParseTracked(options.track, "--track", inputs.jobs->size()));
    stop.tracked = tracked;
  }
  return stop;
}

}  // namespace

void AddComponentOptions(CLI::App& command, scenario::PresetRequest& names) {
  command.add_option("--placement", names.placement, "NAME[:key=value,...]")->check(NotEmpty());
  command.add_option("--admission", names.admission, "NAME[:key=value,...]")->check(NotEmpty());
  command
      .add_option("--grouping", names.grouping,
                  "NAME[:key=value,...]: who shares GPUs with whom (default: nobody)")
      ->check(NotEmpty());
  command
      .add_option("--tuning", names.tuning,
                  "NAME[:key=value,...]: what jobs get beside GPUs (default: nothing)")
      ->check(NotEmpty());
}

void AddRunOptions(CLI::App& command, RunOptions& options) {
  command
      .add_option("TRACE", options.inputs.trace,
                  "job trace (CSV, JSON, a folder of PAI; may be packed with gzip or zstd)")
      ->required();
  command
      .add_option(
          "--cluster", options.inputs.cluster,
          "cluster file (TOML or one-row CSV), or NODESxGPUS such as 16x8 or 8x8:A100,16x8:V100")
      ->required();
  command.add_option(
      "--changes", options.inputs.changes,
      "nodes, partitions, policies and profiles that change at times of the trace (TOML)");
  command.add_option("--format", options.inputs.format, "trace format (default: recognised)");
  command.add_option("--profiles", options.inputs.profiles,
                     "throughput profiles: a folder of MODEL.csv or one file");
  command.add_option("--measured", options.inputs.measured,
                     "what a cluster has measured of its jobs, a folder that `profiles export` "
                     "wrote; goes before profiles and costs of changes");
  AddComponentOptions(command, options.names);
  command
      .add_option("--preset", options.names.preset,
                  "rules of a published program, NAME[:key=value,...], or of your own, "
                  "FILE.toml[:key=value,...] (default: sound)")
      ->check(NotEmpty());
  command
      .add_option("--seed", options.seed,
                  "recorded with the run; a policy that draws numbers has a seed of its own "
                  "(pollux:seed=2)")
      ->transform(Unsigned());
  command
      .add_option("--until", options.until,
                  "stop at this time of the trace (seconds, or 90m, 12h, 1d)")
      ->transform(Span())
      ->check(NonNegative());
  command.add_option("--track", options.track, "stop when the jobs of rows FIRST-LAST have ended");
  AddReadingOptions(command, options.inputs);
  command.add_flag("--json", options.json, "print JSON instead of a table");
}

Status CheckRunOutputs(const RunOptions& options, const std::vector<NamedPath>& outputs) {
  return CheckOutputs(
      {{.name = "TRACE", .path = options.inputs.trace},
       {.name = "--cluster", .path = options.inputs.cluster},
       {.name = "--changes", .path = options.inputs.changes},
       {.name = "--profiles", .path = options.inputs.profiles},
       {.name = "--measured", .path = options.inputs.measured},
       {.name = "--preset", .path = std::string(scenario::PresetPath(options.names.preset))}},
      outputs);
}

Result<RunInputs> ReadRunInputs(const RunOptions& options) {
  ASSIGN_OR_RETURN(const double unit, scenario::TraceUnit(options.names.preset));
  scenario::InputPaths paths = options.inputs;
  paths.time_unit = unit;
  ASSIGN_OR_RETURN(scenario::Inputs inputs, scenario::ReadInputs(paths));
  ReportReading(*inputs.trace);
  for (const std::string& what : scenario::TypesWithoutProfiles(inputs)) {
    fmt::print(stderr, "warning: {}\n", what);
  }
  ASSIGN_OR_RETURN(const world::StopRule stop, StopRuleOf(options, inputs));
  return RunInputs{.inputs = std::move(inputs), .stop = stop};
}

Status WarnOfUnstated(const scenario::PresetRequest& names, const scenario::Inputs& inputs) {
  ASSIGN_OR_RETURN(const std::vector<std::string> unstated,
                   scenario::UnstatedInputs(names, inputs));
  for (const std::string& what : unstated) {
    fmt::print(stderr, "warning: {}\n", what);
  }
  return {};
}

Status PutOut(const results::RunResult& run, const RunOptions& options) {
  if (!options.out.empty()) {
    RETURN_IF_ERROR(results::WriteRun(run, options.out));
  }
  fmt::print("{}\n", options.json ? results::SummaryJson(run) : results::RunSummaryText(run));
  return {};
}

}  // namespace trainyard::cli
