// SPDX-License-Identifier: Apache-2.0
// trainyard trace: validate, stats, generate.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/commands.h"
#include "io/csv_reader.h"
#include "profile/throughput_table.h"
#include "report/metrics.h"
#include "trace/cluster_file.h"
#include "trace/generate.h"
#include "trace/generate_elasticflow.h"
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
  command
      .add_option("TRACE", options.trace,
                  "job trace (CSV or JSON Lines, may be packed with gzip or zstd)")
      ->required();
  command.add_option("--format", options.reading.format, "trace format (default: recognised)");
  command.add_option("--cluster", options.cluster, "cluster file, or NODESxGPUS");
  command.add_flag("--skip-bad-rows", options.reading.skip_bad_rows,
                   "count and list bad rows instead of refusing the file");
}

using OptionList = std::vector<const CLI::Option*>;

struct GenerateCommand {
  std::string style = "mix";
  std::string format = "native";
  std::string out;
  int jobs = 0;
  std::uint64_t seed = 0;
  int largest_job = 16;
  GeneratorOptions mix;
  int figure = 0;  // 0: none
  std::string profiles;
  std::string deadline_factor;
  ElasticflowOptions elasticflow;
  // To see what was given.
  const CLI::Option* style_option = nullptr;
  const CLI::Option* jobs_option = nullptr;
  const CLI::Option* figure_option = nullptr;
  const CLI::Option* share_option = nullptr;
  const CLI::Option* gap_option = nullptr;
  OptionList mix_only;
  OptionList elasticflow_only;
};

bool IsGiven(const CLI::Option* option) { return option->count() > 0; }

Status Require(const CLI::Option* option, std::string_view style) {
  return IsGiven(option) ? Status()
                         : InvalidArgument(fmt::format("{} is required with --style {}",
                                                       option->get_name(), style));
}

Status RefuseAll(const OptionList& options, std::string_view style, std::string_view other) {
  for (const CLI::Option* option : options) {
    if (IsGiven(option)) {
      return InvalidArgument(
          fmt::format("{} belongs to --style {}; expected options of --style {} only",
                      option->get_name(), other, style));
    }
  }
  return {};
}

Result<std::vector<JobSpec>> GenerateMix(GenerateCommand& command) {
  if (Status others = RefuseAll(command.elasticflow_only, "mix", "elasticflow"); !others.ok()) {
    return others.error();
  }
  for (const CLI::Option* option : {command.jobs_option, command.mix_only.front()}) {
    if (Status given = Require(option, "mix"); !given.ok()) {
      return given.error();
    }
  }
  command.mix.jobs = command.jobs;
  command.mix.seed = command.seed;
  command.mix.largest_job = command.largest_job;
  return GenerateTrace(command.mix);
}

// "MIN:MAX", or one number for both.
Status SetDeadlineFactors(const std::string& text, ElasticflowOptions& options) {
  const std::vector<std::string_view> ends = Split(text, ":");
  const std::optional<double> least = ToNumber(ends.front());
  const std::optional<double> most = ToNumber(ends.back());
  if (ends.size() > 2 || !least || !most || *least < 0 || *most < *least) {
    return InvalidArgument(fmt::format(
        "--deadline-factor is '{}'; expected MIN:MAX with 0 <= MIN <= MAX, or one number", text));
  }
  options.least_deadline_factor = *least;
  options.most_deadline_factor = *most;
  return {};
}

Status SetFigure(GenerateCommand& command) {
  const std::optional<ElasticflowOptions> figure = OptionsOfFigure(command.figure);
  if (!figure) {
    return InvalidArgument(fmt::format(
        "--figure is '{}'; expected 9, 10 or 11, whose traces are synthetic", command.figure));
  }
  const bool has_share = command.figure == 11;
  if (has_share != IsGiven(command.share_option)) {
    return InvalidArgument(has_share
                               ? "--best-effort-share is required with --figure 11, which has one "
                                 "trace for each share from 0.1 to 0.9"
                               : fmt::format("--best-effort-share is given; --figure {} has no "
                                             "best-effort jobs",
                                             command.figure));
  }
  const ElasticflowOptions given = command.elasticflow;
  command.elasticflow = *figure;
  command.elasticflow.best_effort_share = given.best_effort_share;
  command.elasticflow.deadline_seed = given.deadline_seed;
  return {};
}

Status SetParameters(GenerateCommand& command) {
  for (const CLI::Option* option : {command.jobs_option, command.gap_option}) {
    if (Status given = Require(option, "elasticflow"); !given.ok()) {
      return given;
    }
  }
  if (command.seed >> 63U != 0) {
    return InvalidArgument(fmt::format(
        "--seed is {}; expected a number below 2^63 with --style elasticflow", command.seed));
  }
  command.elasticflow.jobs = command.jobs;
  command.elasticflow.seed = command.seed;
  command.elasticflow.largest_job = command.largest_job;
  return SetDeadlineFactors(command.deadline_factor, command.elasticflow);
}

Result<std::vector<JobSpec>> GenerateElasticflow(GenerateCommand& command) {
  if (Status others = RefuseAll(command.mix_only, "elasticflow", "mix"); !others.ok()) {
    return others.error();
  }
  if (Status given = Require(command.elasticflow_only.front(), "elasticflow"); !given.ok()) {
    return given.error();
  }
  const bool like_a_figure = IsGiven(command.figure_option);
  if (Status set = like_a_figure ? SetFigure(command) : SetParameters(command); !set.ok()) {
    return set.error();
  }
  const Result<ThroughputTable> profiles = ThroughputTable::Read(command.profiles);
  if (!profiles.ok()) {
    return profiles.error();
  }
  Result<std::vector<JobSpec>> jobs =
      GenerateElasticflowTrace(command.elasticflow, profiles.value());
  if (!jobs.ok() && jobs.error().code == ErrorCode::kBadInput) {
    return BadInput(fmt::format("{}: {}", command.profiles, jobs.error().message));
  }
  return jobs;
}

Status Generate(GenerateCommand& command) {
  if (!IsGiven(command.style_option) && IsGiven(command.figure_option)) {
    command.style = "elasticflow";
  }
  const Result<std::vector<JobSpec>> jobs =
      command.style == "mix" ? GenerateMix(command) : GenerateElasticflow(command);
  if (!jobs.ok()) {
    return jobs.error();
  }
  return WriteText(command.out, command.format == "jsonl" ? WriteJsonlTrace(jobs.value())
                                : command.format == "elasticflow"
                                    ? WriteElasticflowTrace(jobs.value())
                                    : WriteNativeTrace(jobs.value()));
}

// The parser lets "nan" through its ranges.
CLI::Validator Finite() {
  return {[](const std::string& text) {
            return ToNumber(text) ? std::string() : fmt::format("{} is no finite number", text);
          },
          ""};
}

void AddMixOptions(CLI::App& app, GenerateCommand& command) {
  constexpr const char* kGroup = "Options of --style mix";
  command.mix_only = {
      app.add_option("--cluster-gpus", command.mix.cluster_gpus,
                     "GPUs the load refers to (required)")
          ->check(CLI::PositiveNumber)
          ->group(kGroup),
      app.add_option("--load", command.mix.load, "offered share of these GPUs")
          ->check(Finite())
          ->check(CLI::PositiveNumber)
          ->capture_default_str()
          ->group(kGroup),
      app.add_option("--longest-hours", command.mix.longest_hours, "cut durations there; 0: never")
          ->check(Finite())
          ->check(CLI::NonNegativeNumber)
          ->group(kGroup),
      app.add_option("--deadline-share", command.mix.deadline_share,
                     "share of jobs with a deadline")
          ->check(Finite())
          ->check(CLI::Range(0.0, 1.0))
          ->group(kGroup)};
}

void AddElasticflowOptions(CLI::App& app, GenerateCommand& command) {
  constexpr const char* kGroup = "Options of --style elasticflow";
  CLI::Option* profiles = app.add_option("--profiles", command.profiles,
                                         "ElasticFlow's throughput profiles (required)");
  CLI::Option* gap = app.add_option("--mean-interarrival", command.elasticflow.mean_interarrival,
                                    "mean seconds between submissions (required)")
                         ->check(Finite())
                         ->check(CLI::Range(1e-6, 9e9));
  CLI::Option* factor =
      app.add_option("--deadline-factor", command.deadline_factor,
                     "MIN:MAX or one number: deadline = submit + factor * duration")
          ->default_str("0.5:1.5");
  command.deadline_factor = "0.5:1.5";
  CLI::Option* share = app.add_option("--best-effort-share", command.elasticflow.best_effort_share,
                                      "share of jobs without a deadline")
                           ->check(Finite())
                           ->check(CLI::Range(0.0, 1.0));
  CLI::Option* deadline_seed =
      app.add_option("--deadline-seed", command.elasticflow.deadline_seed,
                     "of deadline factors and best-effort jobs (default: the seed + 4)");
  CLI::Option* figure = app.add_option("--figure", command.figure,
                                       "9, 10 or 11: the published parameters (11 needs "
                                       "--best-effort-share)");
  command.gap_option = gap;
  command.share_option = share;
  command.figure_option = figure;
  for (const char* fixed : {"--jobs", "--seed", "--largest-job"}) {
    figure->excludes(app.get_option(fixed));
  }
  figure->excludes(gap)->excludes(factor);
  for (CLI::Option* option : {profiles, gap, factor, share, deadline_seed, figure}) {
    command.elasticflow_only.push_back(option->group(kGroup));
  }
}

void AddGenerate(CLI::App& trace, Command& chosen) {
  auto command = std::make_shared<GenerateCommand>();
  CLI::App* app = trace.add_subcommand("generate", "make a seeded synthetic trace");
  command->style_option =
      app->add_option("--style", command->style,
                      "mix: a load for a cluster, invented models; elasticflow: the generator of "
                      "its artifact")
          ->check(CLI::IsMember({"mix", "elasticflow"}))
          ->capture_default_str();
  command->jobs_option = app->add_option("--jobs", command->jobs, "number of jobs (required)")
                             ->check(CLI::Range(1, 100'000'000));
  app->add_option("--seed", command->seed, "seed of all draws")->capture_default_str();
  app->add_option("--largest-job", command->largest_job, "GPUs of the largest jobs")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app->add_option("--format", command->format, "what to write: native, jsonl or elasticflow")
      ->check(CLI::IsMember({"native", "jsonl", "elasticflow"}))
      ->capture_default_str();
  app->add_option("--out", command->out, "file (default: standard output)");
  AddMixOptions(*app, *command);
  AddElasticflowOptions(*app, *command);
  app->callback([command, &chosen] { chosen.run = [command] { return Generate(*command); }; });
}

void AddGenerateProfiles(CLI::App& trace, Command& chosen) {
  auto out = std::make_shared<std::string>();
  CLI::App* profiles =
      trace.add_subcommand("generate-profiles", "write the synthetic profiles of generated traces");
  profiles->add_option("--out", *out, "file (default: standard output)");
  profiles->callback(
      [out, &chosen] { chosen.run = [out] { return WriteText(*out, GenerateProfiles()); }; });
}

}  // namespace

void AddTrace(CLI::App& app, Command& chosen) {
  CLI::App* trace = app.add_subcommand("trace", "check, describe and make job traces");
  trace->require_subcommand(1);
  auto options = std::make_shared<TraceCommandOptions>();
  CLI::App* validate = trace->add_subcommand("validate", "read a trace and say what is wrong");
  AddReading(*validate, *options);
  validate->add_option("--profiles", options->profiles, "check that all models have a profile");
  validate->callback([options, &chosen] { chosen.run = [options] { return Validate(*options); }; });
  CLI::App* stats = trace->add_subcommand("stats", "arrivals, sizes, durations and load");
  AddReading(*stats, *options);
  stats->add_flag("--json", options->json, "print JSON");
  stats->callback([options, &chosen] { chosen.run = [options] { return Stats(*options); }; });
  AddGenerate(*trace, chosen);
  AddGenerateProfiles(*trace, chosen);
}

}  // namespace trainyard
