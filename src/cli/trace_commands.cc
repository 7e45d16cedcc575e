// SPDX-License-Identifier: Apache-2.0
// trainyard trace: validate, stats, generate.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "io/csv_reader.h"
#include "profile/throughput_table.h"
#include "report/metrics.h"
#include "trace/cluster_file.h"
#include "trace/generate.h"
#include "trace/trace.h"

namespace trainyard {
namespace {

using Json = nlohmann::ordered_json;

struct TraceCommandOptions {
  std::string trace;
  TraceOptions reading;
  std::string cluster;
  std::string profiles;
  bool json = false;
};

Status CheckModels(const Trace& trace, const std::string& profiles) {
  const Result<ThroughputTable> table = ThroughputTable::Read(profiles);
  if (!table.ok()) {
    return table.error();
  }
  for (std::size_t i = 0; i < trace.jobs.size(); ++i) {
    const JobSpec& job = trace.jobs[i];
    if (table.value().Find(job.model, job.batch_size) < 0) {
      return BadInput(
          fmt::format("{}:{}: model '{}' with batch size {} is not in {}; expected one "
                      "that it has",
                      trace.path, trace.lines[i], job.model, job.batch_size, profiles));
    }
  }
  return {};
}

Status Validate(const TraceCommandOptions& options) {
  const Result<Trace> trace = ReadTrace(options.trace, options.reading);
  if (!trace.ok()) {
    return trace.error();
  }
  if (!options.cluster.empty()) {
    const Result<Cluster> cluster = ReadCluster(options.cluster);
    if (!cluster.ok()) {
      return cluster.error();
    }
    if (Status status = CheckFits(trace.value(), cluster.value()); !status.ok()) {
      return status;
    }
  }
  if (!options.profiles.empty()) {
    if (Status status = CheckModels(trace.value(), options.profiles); !status.ok()) {
      return status;
    }
  }
  for (const SkippedRow& row : trace.value().skipped) {
    fmt::print(stderr, "skipped: {}\n", row.why);
  }
  fmt::print("{}: {} jobs, format {}, {} rows skipped\n", options.trace, trace.value().jobs.size(),
             trace.value().format, trace.value().skipped.size());
  return {};
}

struct TraceStatistics {
  std::size_t jobs = 0;
  std::size_t with_deadline = 0;
  std::size_t best_effort = 0;
  double first_submit = 0;
  double last_submit = 0;
  double gpu_hours = 0;           // of jobs with a duration
  std::vector<double> durations;  // ascending seconds
  std::map<int, std::size_t> by_gpus;
  std::map<std::string, std::size_t> by_model;
};

TraceStatistics StatisticsOf(const std::vector<JobSpec>& jobs) {
  TraceStatistics statistics{.jobs = jobs.size()};
  statistics.first_submit = Seconds(jobs.front().submit);
  for (const JobSpec& job : jobs) {
    statistics.with_deadline += job.deadline ? 1U : 0U;
    statistics.best_effort += job.best_effort ? 1U : 0U;
    statistics.first_submit = std::min(statistics.first_submit, Seconds(job.submit));
    statistics.last_submit = std::max(statistics.last_submit, Seconds(job.submit));
    if (job.duration) {
      statistics.gpu_hours += Seconds(*job.duration) * job.gpus / 3600;
      statistics.durations.push_back(Seconds(*job.duration));
    }
    ++statistics.by_gpus[job.gpus];
    ++statistics.by_model[job.model];
  }
  std::sort(statistics.durations.begin(), statistics.durations.end());
  return statistics;
}

Json StatisticsJson(const TraceStatistics& statistics, const Trace& trace,
                    std::optional<double> load) {
  Json json{{"path", trace.path},
            {"format", trace.format},
            {"sha256", trace.sha256},
            {"jobs", statistics.jobs},
            {"skipped_rows", trace.skipped.size()},
            {"deadline_jobs", statistics.with_deadline},
            {"best_effort_jobs", statistics.best_effort},
            {"first_submit", statistics.first_submit},
            {"last_submit", statistics.last_submit},
            {"gpu_hours", statistics.gpu_hours}};
  for (const auto& [name, share] : {std::pair{"duration_p50", 0.5}, std::pair{"duration_p90", 0.9},
                                    std::pair{"duration_p99", 0.99}}) {
    json[name] =
        statistics.durations.empty() ? Json() : Json(Percentile(statistics.durations, share));
  }
  json["load"] = load ? Json(*load) : Json();
  for (const auto& [gpus, jobs] : statistics.by_gpus) {
    json["jobs_by_gpus"][std::to_string(gpus)] = jobs;
  }
  for (const auto& [model, jobs] : statistics.by_model) {
    json["jobs_by_model"][model.empty() ? "(none)" : model] = jobs;
  }
  return json;
}

void PrintStatistics(const TraceStatistics& statistics, const Trace& trace,
                     std::optional<double> load) {
  fmt::print("{} ({})\n", trace.path, trace.format);
  fmt::print("  jobs            {} ({} with deadline, {} best effort, {} rows skipped)\n",
             statistics.jobs, statistics.with_deadline, statistics.best_effort,
             trace.skipped.size());
  fmt::print("  submits         {:.0f} s to {:.0f} s\n", statistics.first_submit,
             statistics.last_submit);
  fmt::print("  GPU-hours       {:.1f}\n", statistics.gpu_hours);
  if (!statistics.durations.empty()) {
    fmt::print("  duration        p50 {:.0f} s, p90 {:.0f} s, p99 {:.0f} s\n",
               Percentile(statistics.durations, 0.5), Percentile(statistics.durations, 0.9),
               Percentile(statistics.durations, 0.99));
  }
  if (load) {
    fmt::print("  offered load    {:.2f} of the cluster between first and last submit\n", *load);
  }
  fmt::print("  jobs by GPUs   ");
  for (const auto& [gpus, jobs] : statistics.by_gpus) {
    fmt::print(" {}:{}", gpus, jobs);
  }
  fmt::print("\n  jobs by model  ");
  for (const auto& [model, jobs] : statistics.by_model) {
    fmt::print(" {}:{}", model.empty() ? "(none)" : model, jobs);
  }
  fmt::print("\n");
}

Status Stats(const TraceCommandOptions& options) {
  const Result<Trace> trace = ReadTrace(options.trace, options.reading);
  if (!trace.ok()) {
    return trace.error();
  }
  const TraceStatistics statistics = StatisticsOf(trace.value().jobs);
  std::optional<double> load;
  if (!options.cluster.empty()) {
    const Result<Cluster> cluster = ReadCluster(options.cluster);
    if (!cluster.ok()) {
      return cluster.error();
    }
    const double span = statistics.last_submit - statistics.first_submit;
    if (span > 0) {
      load = statistics.gpu_hours * 3600 / (span * cluster.value().total_gpus());
    }
  }
  if (options.json) {
    fmt::print("{}\n", StatisticsJson(statistics, trace.value(), load).dump(2));
  } else {
    PrintStatistics(statistics, trace.value(), load);
  }
  return {};
}

Status WriteText(const std::string& path, const std::string& text) {
  if (path.empty()) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return {};
  }
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) {
    return Failed(path + ": cannot be written");
  }
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = std::fclose(file) == 0;
  return written && closed ? Status() : Failed(path + ": writing failed (disk full?)");
}

void AddReading(CLI::App& command, TraceCommandOptions& options) {
  command.add_option("TRACE", options.trace, "job trace (CSV, may be gzipped)")->required();
  command.add_option("--format", options.reading.format, "trace format (default: recognised)");
  command.add_option("--cluster", options.cluster, "cluster file, or NODESxGPUS");
  command.add_flag("--skip-bad-rows", options.reading.skip_bad_rows,
                   "count and list bad rows instead of refusing the file");
}

void AddGenerate(CLI::App& trace, CommandOutcome& outcome) {
  auto options = std::make_shared<GeneratorOptions>();
  auto out = std::make_shared<std::string>();
  CLI::App* command = trace.add_subcommand("generate", "make a seeded synthetic trace");
  command->add_option("--jobs", options->jobs, "number of jobs")
      ->required()
      ->check(CLI::Range(1, 100'000'000));
  command->add_option("--seed", options->seed, "seed of all draws")->capture_default_str();
  command->add_option("--cluster-gpus", options->cluster_gpus, "GPUs the load refers to")
      ->required()
      ->check(CLI::PositiveNumber);
  command->add_option("--load", options->load, "offered share of these GPUs")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--largest-job", options->largest_job, "GPUs of the largest jobs")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--longest-hours", options->longest_hours, "cut durations there; 0: never")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--deadline-share", options->deadline_share, "share of jobs with a deadline")
      ->check(CLI::Range(0.0, 1.0));
  command->add_option("--out", *out, "file (default: standard output)");
  command->callback([options, out, &outcome] {
    outcome.status = WriteText(*out, WriteNativeTrace(GenerateTrace(*options)));
  });
  auto profiles_out = std::make_shared<std::string>();
  CLI::App* profiles =
      trace.add_subcommand("generate-profiles", "write the synthetic profiles of generated traces");
  profiles->add_option("--out", *profiles_out, "file (default: standard output)");
  profiles->callback(
      [profiles_out, &outcome] { outcome.status = WriteText(*profiles_out, GenerateProfiles()); });
}

}  // namespace

void AddTrace(CLI::App& app, CommandOutcome& outcome) {
  CLI::App* trace = app.add_subcommand("trace", "check, describe and make job traces");
  trace->require_subcommand(1);
  auto options = std::make_shared<TraceCommandOptions>();
  CLI::App* validate = trace->add_subcommand("validate", "read a trace and say what is wrong");
  AddReading(*validate, *options);
  validate->add_option("--profiles", options->profiles, "check that all models have a profile");
  validate->callback([options, &outcome] { outcome.status = Validate(*options); });
  CLI::App* stats = trace->add_subcommand("stats", "arrivals, sizes, durations and load");
  AddReading(*stats, *options);
  stats->add_flag("--json", options->json, "print JSON");
  stats->callback([options, &outcome] { outcome.status = Stats(*options); });
  AddGenerate(*trace, outcome);
}

}  // namespace trainyard
