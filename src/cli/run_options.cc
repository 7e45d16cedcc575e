// SPDX-License-Identifier: Apache-2.0
#include "cli/run_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/text.h"

namespace trainyard {
namespace {

Result<StopRule> StopRuleOf(const RunOptions& options, const Inputs& inputs) {
  StopRule stop;
  if (options.until) {
    stop.until = AtSeconds(*options.until);
  }
  if (!options.track.empty()) {
    const std::vector<std::string_view> ends = Split(options.track, "-");
    const auto first = ToNumber(ends.front());
    const auto last = ToNumber(ends.back());
    const auto jobs = static_cast<double>(inputs.jobs->size());
    if (ends.size() != 2 || !first || !last || *first < 0 || *last < *first || *last >= jobs) {
      return InvalidArgument(fmt::format(
          "--track is '{}'; expected FIRST-LAST with rows from 0 to {}", options.track, jobs - 1));
    }
    stop.tracked = {JobAt(static_cast<std::size_t>(*first)),
                    JobAt(static_cast<std::size_t>(*last))};
  }
  return stop;
}

void ReportSkipped(const Inputs& inputs) {
  if (inputs.trace->skipped.empty()) {
    return;
  }
  fmt::print(stderr, "{}: skipped {} rows of {}:\n", inputs.paths.trace,
             inputs.trace->skipped.size(), inputs.trace->skipped.size() + inputs.jobs->size());
  for (const SkippedRow& row : inputs.trace->skipped) {
    fmt::print(stderr, "  {}\n", row.why);
  }
}

}  // namespace

void AddRunOptions(CLI::App& command, RunOptions& options) {
  command
      .add_option("TRACE", options.inputs.trace,
                  "job trace (CSV or JSON Lines, may be packed with gzip or zstd)")
      ->required();
  command
      .add_option("--cluster", options.inputs.cluster,
                  "cluster file (TOML or one-row CSV), or NODESxGPUS such as 16x8")
      ->required();
  command.add_option("--format", options.inputs.format, "trace format (default: recognised)");
  command.add_option("--profiles", options.inputs.profiles,
                     "throughput profiles: a folder of MODEL.csv or one file");
  command.add_option("--placement", options.names.placement, "NAME[:key=value,...]");
  command.add_option("--admission", options.names.admission, "NAME[:key=value,...]");
  command.add_option("--preset", options.names.preset,
                     "rules of a published program, NAME[:key=value,...] (default: sound)");
  command.add_option("--seed", options.seed, "recorded with the run; policies draw no numbers");
  command.add_option("--until", options.until, "stop at this time (seconds of the trace)");
  command.add_option("--track", options.track, "stop when the jobs of rows FIRST-LAST have ended");
  command.add_flag("--skip-bad-rows", options.inputs.skip_bad_rows,
                   "count and list bad rows instead of refusing the file");
  command.add_flag("--json", options.json, "print JSON instead of a table");
}

Result<RunInputs> ReadRunInputs(const RunOptions& options) {
  Result<Inputs> inputs = ReadInputs(options.inputs);
  if (!inputs.ok()) {
    return inputs.error();
  }
  ReportSkipped(inputs.value());
  const Result<StopRule> stop = StopRuleOf(options, inputs.value());
  if (!stop.ok()) {
    return stop.error();
  }
  return RunInputs{.inputs = std::move(inputs).value(), .stop = stop.value()};
}

Status CheckFinished(const RunResult& run, const StopRule& stop) {
  if (stop.until || stop.tracked) {
    return {};
  }
  const auto open = [](const JobResult& job) { return job.outcome == Outcome::kUnfinished; };
  const auto first = std::find_if(run.jobs.begin(), run.jobs.end(), open);
  if (first == run.jobs.end()) {
    return {};
  }
  return Failed(fmt::format(
      "{}: {} of {} jobs never finished (first: job {}, {} GPUs): nothing could happen any more",
      run.label, std::count_if(run.jobs.begin(), run.jobs.end(), open), run.jobs.size(),
      first->spec->name, first->spec->gpus));
}

}  // namespace trainyard
