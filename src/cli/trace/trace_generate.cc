// SPDX-License-Identifier: Apache-2.0
// trainyard trace generate, generate-profiles, generate-failures.
#include "cli/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "cli/numbers.h"
#include "cli/trace/workload_options.h"
#include "io/file.h"
#include "profile/throughput_table.h"
#include "trace/clusters/cluster_file.h"
#include "trace/generators/blox.h"
#include "trace/generators/elasticflow.h"
#include "trace/generators/failures.h"
#include "trace/generators/gavel.h"
#include "trace/generators/mix.h"
#include "trace/generators/synergy.h"
#include "trace/generators/workload.h"
#include "trace/trace.h"
#include "trace/writers.h"

namespace trainyard::cli {
namespace {

constexpr double kSecondsAnHour = 3600;
constexpr double kSecondsADay = 24 * kSecondsAnHour;

// Where generated text goes.
struct Target {
  std::string out;  // empty: standard output
  bool force = false;
};

void AddTarget(CLI::App& app, Target& target) {
  app.add_option("--out", target.out, "file (default: standard output)");
  app.add_flag("--force", target.force, "replace the file if it is there");
}

// Before the work, which may take long.
Status CheckFree(const Target& target) {
  std::error_code ignored;
  if (!target.out.empty() && !target.force &&
      std::filesystem::is_regular_file(target.out, ignored)) {
    return InvalidArgument(target.out + ": is there already; expected --force, or another name");
  }
  return {};
}

Status WriteText(const Target& target, const std::string& text) {
  const std::string& path = target.out;
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

std::string GroupOf(const std::string& style) { return "Options of --style " + style; }

struct GenerateCommand {
  CLI::App* app = nullptr;  // to see what was given
  std::string style = "mix";
  std::string format = "native";
  Target target;
  int jobs = 0;
  std::uint64_t seed = 0;
  int largest_job = 16;
  trace::GeneratorOptions mix;
  int figure = 0;  // 0: none
  std::string profiles;
  std::string deadline_factor = "0.5:1.5";
  trace::ElasticflowOptions elasticflow;
  trace::SynergyOptions synergy;
  double jobs_per_hour = 0;
  trace::GavelOptions gavel;
  std::string even_hours;
  trace::BloxOptions blox;
  double hours = 0;
  std::string pool;
  double ratio = 3;
  std::string split = "20/70/10";
  OwnOptions workload;

  [[nodiscard]] bool Has(const std::string& option) const { return app->count(option) > 0; }
};

Status Require(const GenerateCommand& command, std::initializer_list<const char*> options) {
  for (const char* option : options) {
    if (!command.Has(option)) {
      return InvalidArgument(fmt::format("{} is required with --style {}", option, command.style));
    }
  }
  return {};
}

bool IsWorkload(std::string_view style) {
  return std::any_of(trace::WorkloadStyles().begin(), trace::WorkloadStyles().end(),
                     [style](const trace::WorkloadStyle& one) { return one.name == style; });
}

constexpr const char* kWorkloadGroup =
    "Options of --style poisson, diurnal, itp-like, philly-like and helios-like, beside those of "
    "mix, --profiles, --jobs-per-hour, --deadline-factor and --best-effort-share";

// The options of a style that not all styles have: those of its group in the help, and some of
// others.
std::vector<const CLI::Option*> OptionsOf(const CLI::App& app, const std::string& style) {
  const auto in = [&app](const std::string& group) {
    return app.get_options([&group](const CLI::Option* one) { return one->get_group() == group; });
  };
  const bool workload = IsWorkload(style);
  std::vector<const CLI::Option*> options = in(workload ? kWorkloadGroup : GroupOf(style));
  std::vector<const char*> others;
  if (workload) {
    const std::vector<const CLI::Option*> mix = in(GroupOf("mix"));
    options.insert(options.end(), mix.begin(), mix.end());
    others = {"--profiles", "--deadline-factor", "--best-effort-share", "--jobs-per-hour"};
  } else if (style == "synergy") {
    others = {"--profiles"};
  } else if (style == "gavel") {
    others = {"--profiles", "--jobs-per-hour"};
  } else if (style == "blox") {
    others = {"--jobs-per-hour"};
  }
  for (const char* other : others) {
    options.push_back(app.get_option(other));
  }
  return options;
}

std::vector<std::string> StyleNames() {
  std::vector<std::string> names{"mix", "elasticflow", "synergy", "blox", "gavel"};
  for (const trace::WorkloadStyle& style : trace::WorkloadStyles()) {
    names.emplace_back(style.name);
  }
  return names;
}

// Options of other styles than the one chosen; some belong to more than one.
Status RefuseOthers(const GenerateCommand& command) {
  const std::vector<const CLI::Option*> own = OptionsOf(*command.app, command.style);
  std::vector<std::string> styles = StyleNames();
  std::sort(styles.begin(), styles.end());
  for (const std::string& style : styles) {
    for (const CLI::Option* option : OptionsOf(*command.app, style)) {
      if (option->count() > 0 && std::find(own.begin(), own.end(), option) == own.end()) {
        return InvalidArgument(
            fmt::format("{} belongs to --style {}; expected options of --style {} only",
                        option->get_name(), style, command.style));
      }
    }
  }
  return {};
}

Result<std::vector<JobSpec>> GenerateMix(GenerateCommand& command) {
  RETURN_IF_ERROR(Require(command, {"--jobs", "--cluster-gpus"}));
  command.mix.jobs = command.jobs;
  command.mix.seed = command.seed;
  command.mix.largest_job = command.largest_job;
  return trace::GenerateTrace(command.mix);
}

// "MIN:MAX", or one number for both.
Status SetDeadlineFactors(const std::string& text, trace::ElasticflowOptions& options) {
  const std::vector<std::string_view> ends = base::Split(text, ":");
  const std::optional<double> least = base::ToNumber(ends.front());
  const std::optional<double> most = base::ToNumber(ends.back());
  if (ends.size() > 2 || !least || !most || *least < 0 || *most < *least) {
    return InvalidArgument(fmt::format(
        "--deadline-factor is '{}'; expected MIN:MAX with 0 <= MIN <= MAX, or one number", text));
  }
  options.least_deadline_factor = *least;
  options.most_deadline_factor = *most;
  return {};
}

Status SetFigure(GenerateCommand& command) {
  const std::optional<trace::ElasticflowOptions> figure = trace::OptionsOfFigure(command.figure);
  if (!figure) {
    return InvalidArgument(fmt::format(
        "--figure is '{}'; expected 9, 10 or 11, whose traces are synthetic", command.figure));
  }
  const bool has_share = command.figure == 11;
  if (has_share != command.Has("--best-effort-share")) {
    return InvalidArgument(has_share
                               ? "--best-effort-share is required with --figure 11, which has one "
                                 "trace for each share from 0.1 to 0.9"
                               : fmt::format("--best-effort-share is given; --figure {} has no "
                                             "best-effort jobs",
                                             command.figure));
  }
  const trace::ElasticflowOptions given = command.elasticflow;
  command.elasticflow = *figure;
  command.elasticflow.best_effort_share = given.best_effort_share;
  command.elasticflow.deadline_seed = given.deadline_seed;
  return {};
}

// Of generators that add to it for their streams.
Status CheckSeed(const GenerateCommand& command) {
  return command.seed >> 63U == 0
             ? Status()
             : InvalidArgument(
                   fmt::format("--seed is {}; expected a number below 2^63 with --style {}",
                               command.seed, command.style));
}

Status SetParameters(GenerateCommand& command) {
  RETURN_IF_ERROR(Require(command, {"--jobs", "--mean-interarrival"}));
  RETURN_IF_ERROR(CheckSeed(command));
  command.elasticflow.jobs = command.jobs;
  command.elasticflow.seed = command.seed;
  command.elasticflow.largest_job = command.largest_job;
  return SetDeadlineFactors(command.deadline_factor, command.elasticflow);
}

Result<std::vector<JobSpec>> GenerateElasticflow(GenerateCommand& command) {
  RETURN_IF_ERROR(Require(command, {"--profiles"}));
  const bool like_a_figure = command.Has("--figure");
  RETURN_IF_ERROR(like_a_figure ? SetFigure(command) : SetParameters(command));
  ASSIGN_OR_RETURN(const profile::ThroughputTable profiles,
                   profile::ThroughputTable::Read(command.profiles));
  Result<std::vector<JobSpec>> jobs =
      trace::GenerateElasticflowTrace(command.elasticflow, profiles);
  if (!jobs.ok() && jobs.error().code == ErrorCode::kBadInput) {
    return BadInput(fmt::format("{}: {}", command.profiles, jobs.error().message));
  }
  return jobs;
}

// "IMAGE/LANGUAGE/SPEECH"
Status SetSplit(const std::string& text, trace::SynergyOptions& options) {
  const std::vector<std::string_view> parts = base::Split(text, "/");
  bool good = parts.size() == options.split.size();
  double sum = 0;
  for (std::size_t i = 0; good && i < parts.size(); ++i) {
    const std::optional<double> share = base::ToNumber(parts[i]);
    good = share && *share >= 0 && *share <= 100;
    options.split[i] = share.value_or(0);
    sum += options.split[i];
  }
  if (!good || sum <= 0) {
    return InvalidArgument(fmt::format(
        "--split is '{}'; expected IMAGE/LANGUAGE/SPEECH in percent, such as 20/70/10", text));
  }
  return {};
}

Result<std::vector<JobSpec>> GenerateSynergy(GenerateCommand& command) {
  RETURN_IF_ERROR(Require(command, {"--jobs", "--profiles", "--jobs-per-hour"}));
  RETURN_IF_ERROR(SetSplit(command.split, command.synergy));
  ASSIGN_OR_RETURN(const profile::SensitivityTable profiles,
                   profile::SensitivityTable::Read(command.profiles));
  command.synergy.jobs = command.jobs;
  command.synergy.jobs_per_hour = command.jobs_per_hour;
  command.synergy.seed = command.seed;
  Result<std::vector<JobSpec>> jobs =
      trace::GenerateSynergyTrace(command.synergy, profiles, command.ratio);
  if (!jobs.ok() && jobs.error().code == ErrorCode::kBadInput) {
    return BadInput(fmt::format("{}: {}", command.profiles, jobs.error().message));
  }
  return jobs;
}

// "MIN:MAX:COUNT"
Status SetEvenHours(const std::string& text, trace::GavelOptions& options) {
  const std::vector<std::string_view> parts = base::Split(text, ":");
  constexpr double kMostHours = 1e6;
  if (parts.size() == 3) {
    const std::optional<double> least = base::ToNumber(parts[0]);
    const std::optional<double> most = base::ToNumber(parts[1]);
    const std::optional<int> count = base::ToInteger<int>(parts[2]);
    if (least && most && count && *least > 0 && *least <= *most && *most <= kMostHours &&
        *count > 0) {
      options.even_hours = trace::GavelOptions::EvenHours{*least, *most, *count};
      return {};
    }
  }
  return InvalidArgument(fmt::format(
      "--even-hours is '{}'; expected MIN:MAX:COUNT with 0 < MIN <= MAX, such as 1:10:10", text));
}

Result<std::vector<JobSpec>> GenerateGavel(GenerateCommand& command) {
  RETURN_IF_ERROR(Require(command, {"--jobs", "--profiles"}));
  RETURN_IF_ERROR(CheckSeed(command));
  if (command.Has("--even-hours")) {
    RETURN_IF_ERROR(SetEvenHours(command.even_hours, command.gavel));
    if (command.gavel.priorities) {
      return InvalidArgument("--priorities go with --style gavel, but not with --even-hours");
    }
  }
  ASSIGN_OR_RETURN(const std::vector<trace::GavelKind> kinds,
                   trace::ReadGavelKinds(command.profiles));
  command.gavel.jobs = command.jobs;
  command.gavel.jobs_per_hour = command.jobs_per_hour;
  command.gavel.seed = command.seed;
  return trace::GenerateGavelTrace(command.gavel, kinds);
}

Result<std::vector<JobSpec>> GenerateBlox(GenerateCommand& command) {
  RETURN_IF_ERROR(Require(command, {"--jobs-per-hour"}));
  if (command.Has("--jobs") == command.Has("--hours")) {
    return InvalidArgument("expected one of --jobs and --hours with --style blox");
  }
  if (command.blox.bursts && !command.pool.empty()) {
    return InvalidArgument("--bursts have lengths of their own; expected them without --pool");
  }
  command.blox.jobs_per_hour = command.jobs_per_hour;
  command.blox.seed = command.seed;
  command.blox.jobs = static_cast<std::size_t>(command.jobs);
  if (command.Has("--hours")) {
    command.blox.until = AtSeconds(command.hours * 3600);
  }
  if (command.pool.empty()) {
    return trace::GenerateBloxTrace(command.blox, nullptr);
  }
  ASSIGN_OR_RETURN(const trace::BloxPool pool, trace::ReadBloxPool(command.pool));
  return trace::GenerateBloxTrace(command.blox, &pool);
}

Result<trace::WorkloadOptions> WorkloadOptionsOf(GenerateCommand& command) {
  const bool has_gpus = command.Has("--cluster-gpus");
  if (command.Has("--load") && !has_gpus) {
    return InvalidArgument("--load needs --cluster-gpus, the GPUs it refers to");
  }
  RETURN_IF_ERROR(SetDeadlineFactors(command.deadline_factor, command.elasticflow));
  trace::WorkloadOptions options =
      std::find_if(trace::WorkloadStyles().begin(), trace::WorkloadStyles().end(),
                   [&](const trace::WorkloadStyle& style) { return style.name == command.style; })
          ->defaults;
  options.jobs = command.jobs;
  options.seed = command.seed;
  options.load = has_gpus ? command.mix.load : 0;
  options.cluster_gpus = command.mix.cluster_gpus;
  // The rate of the style counts only where two of three are not given without it.
  if (options.load > 0 || command.jobs_per_hour > 0 ||
      (command.jobs > 0 && command.workload.days > 0)) {
    options.jobs_per_hour = command.jobs_per_hour;
  }
  options.largest_job = command.Has("--largest-job") ? command.largest_job : 0;
  if (command.mix.longest_hours > 0) {
    options.most_seconds = std::max(1.0, command.mix.longest_hours * kSecondsAnHour);
  }
  options.deadline_share = command.mix.deadline_share;
  options.least_deadline_factor = command.elasticflow.least_deadline_factor;
  options.most_deadline_factor = command.elasticflow.most_deadline_factor;
  options.best_effort_share = command.elasticflow.best_effort_share;
  options.data_sets = command.mix.data_sets;
  RETURN_IF_ERROR(SetOwnOptions(command.workload, options));
  return options;
}

Result<std::vector<JobSpec>> GenerateByStyle(GenerateCommand& command) {
  ASSIGN_OR_RETURN(const trace::WorkloadOptions options, WorkloadOptionsOf(command));
  if (command.profiles.empty()) {
    return trace::GenerateWorkload(options, trace::GenerateProfileRows());
  }
  ASSIGN_OR_RETURN(const profile::ThroughputTable profiles,
                   profile::ThroughputTable::Read(command.profiles));
  return trace::GenerateWorkload(options, profiles.rows());
}

Result<std::vector<JobSpec>> GenerateInStyle(GenerateCommand& command) {
  RETURN_IF_ERROR(RefuseOthers(command));
  if (IsWorkload(command.style)) {
    return GenerateByStyle(command);
  }
  if (command.style == "mix") {
    return GenerateMix(command);
  }
  if (command.style == "blox") {
    return GenerateBlox(command);
  }
  if (command.style == "gavel") {
    return GenerateGavel(command);
  }
  return command.style == "synergy" ? GenerateSynergy(command) : GenerateElasticflow(command);
}

Result<std::string> SettingText(const std::vector<JobSpec>& jobs, const std::string& format) {
  if (format == "elasticflow" || format == "synergy") {
    for (const JobSpec& job : jobs) {
      if (!job.iterations || !job.duration) {
        return InvalidArgument("--format " + format + " needs iterations; expected another format");
      }
    }
  }
  if (format == "jsonl") {
    return trace::WriteJsonlTrace(jobs);
  }
  return format == "elasticflow" ? trace::WriteElasticflowTrace(jobs)
         : format == "synergy"   ? trace::WriteSynergyTrace(jobs)
         : format == "blox"      ? trace::WriteBloxTrace(jobs)
                                 : trace::WriteNativeTrace(jobs);
}

Status Generate(GenerateCommand& command) {
  RETURN_IF_ERROR(CheckFree(command.target));
  if (!command.Has("--style") && command.Has("--figure")) {
    command.style = "elasticflow";
  }
  if (command.style == "blox" && !command.Has("--format")) {
    command.format = "blox";  // no other has the time of handing over
  }
  ASSIGN_OR_RETURN(const std::vector<JobSpec> jobs, GenerateInStyle(command));
  ASSIGN_OR_RETURN(const std::string text, SettingText(jobs, command.format));
  return WriteText(command.target, text);
}

void AddMixOptions(CLI::App& app, GenerateCommand& command) {
  constexpr int kMostDataSets = 1'000'000;
  app.option_defaults()->group(GroupOf("mix"));
  app.add_option("--cluster-gpus", command.mix.cluster_gpus, "GPUs the load refers to (required)")
      ->transform(WholeNumber())
      ->check(Positive());
  app.add_option("--load", command.mix.load, "offered share of these GPUs")
      ->check(Positive())
      ->capture_default_str();
  app.add_option("--longest-hours", command.mix.longest_hours, "cut durations there; 0: never")
      ->transform(Span(kSecondsAnHour))
      ->check(NonNegative());
  app.add_option("--deadline-share", command.mix.deadline_share, "share of jobs with a deadline")
      ->check(Finite())
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--data-sets", command.mix.data_sets,
                 "data sets that jobs train on; 0: none is stated")
      ->transform(WholeNumber())
      ->check(CLI::Range(0, kMostDataSets));
}

void AddElasticflowOptions(CLI::App& app, GenerateCommand& command) {
  app.option_defaults()->group(GroupOf("elasticflow"));
  app.add_option("--profiles", command.profiles,
                 "the published profiles (required; also with --style synergy and gavel)");
  app.add_option("--mean-interarrival", command.elasticflow.mean_interarrival,
                 "mean seconds between submissions (required)")
      ->transform(Span())
      ->check(Finite())
      ->check(CLI::Range(1e-6, 9e9));
  app.add_option("--deadline-factor", command.deadline_factor,
                 "MIN:MAX or one number: deadline = submit + factor * duration")
      ->capture_default_str();
  app.add_option("--best-effort-share", command.elasticflow.best_effort_share,
                 "share of jobs without a deadline")
      ->check(Finite())
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--deadline-seed", command.elasticflow.deadline_seed,
                 "of deadline factors and best-effort jobs (default: the seed + 4)")
      ->transform(Unsigned());
  CLI::Option* figure = app.add_option("--figure", command.figure,
                                       "9, 10 or 11: the published parameters (11 needs "
                                       "--best-effort-share)");
  for (const char* fixed :
       {"--jobs", "--seed", "--largest-job", "--mean-interarrival", "--deadline-factor"}) {
    figure->excludes(app.get_option(fixed));
  }
}

void AddSynergyOptions(CLI::App& app, GenerateCommand& command) {
  app.option_defaults()->group(GroupOf("synergy"));
  app.add_option("--jobs-per-hour", command.jobs_per_hour,
                 "mean number of submissions (required; also with --style blox, and with gavel, "
                 "where all jobs come at once without it)")
      ->check(Finite())
      ->check(CLI::Range(1e-6, 1e9));
  app.add_option("--split", command.split, "percent of image, language and speech models")
      ->capture_default_str();
  app.add_option("--cpu-ratio", command.ratio, "CPUs per GPU that the profiles are for")
      ->check(Positive())
      ->capture_default_str();
  app.add_flag("--one-gpu", command.synergy.one_gpu, "all jobs ask for 1 GPU");
  app.add_flag("--brief", command.synergy.brief, "durations of 8 hours at most");
}

void AddBloxOptions(CLI::App& app, GenerateCommand& command) {
  app.option_defaults()->group(GroupOf("blox"));
  app.add_option("--hours", command.hours, "what is handed over by then, instead of --jobs")
      ->transform(Span(kSecondsAnHour))
      ->check(Finite())
      ->check(CLI::Range(0.0, 2.5e6));
  app.add_flag("--bursts", command.blox.bursts,
               "short jobs every four hours, as in the published workload");
  app.add_option("--pool", command.pool,
                 "CSV with total_iterations and num_gpus to take in turn "
                 "(default: 10 to 24 hours on 1 GPU)");
}

void AddGavelOptions(CLI::App& app, GenerateCommand& command) {
  app.option_defaults()->group(GroupOf("gavel"));
  app.add_flag("--multi-gpu", command.gavel.multi_gpu,
               "1, 2, 4 and 8 GPUs (70, 10, 15 and 5 %) instead of one for each job");
  app.add_flag("--priorities", command.gavel.priorities, "a fifth of the jobs has the weight 5");
  app.add_option(
      "--even-hours", command.even_hours,
      "MIN:MAX:COUNT: lengths of so many hours, evenly between, as the script that writes "
      "traces draws them");
}

std::string StyleHelp() {
  std::string help =
      "mix: a load for a cluster, invented models; elasticflow, synergy, blox, gavel: the "
      "generators of their artifacts";
  for (const trace::WorkloadStyle& style : trace::WorkloadStyles()) {
    help += fmt::format("; {}: {}", style.name, style.help);
  }
  return help;
}

struct FailuresCommand {
  std::string cluster;
  Target target;
  trace::FailureOptions options;
};

// A file with what is to be written below: the nodes, without failures.
Result<std::string> NodesToml(const std::string& spec, const Cluster& cluster) {
  if (!spec.ends_with(".toml")) {
    std::string text;
    for (const NodeSpec& node : cluster.nodes) {
      text += fmt::format("[[nodes]]\nhost = \"{}\"\ngpus = {}\n", node.name, node.gpus);
    }
    return text;
  }
  if (!cluster.changes.empty()) {
    return InvalidArgument(spec + " has failures already; expected a cluster without");
  }
  return io::ReadFile(spec);
}

Status Failures(const FailuresCommand& command) {
  RETURN_IF_ERROR(CheckFree(command.target));
  ASSIGN_OR_RETURN(const Cluster cluster, trace::ReadCluster(command.cluster));
  ASSIGN_OR_RETURN(const std::string nodes, NodesToml(command.cluster, cluster));
  return WriteText(command.target,
                   nodes + trace::FailuresToml(trace::GenerateFailures(cluster, command.options)));
}

}  // namespace

void AddGenerateFailures(CLI::App& trace, Command& chosen) {
  auto command = std::make_shared<FailuresCommand>();
  CLI::App* app = trace.add_subcommand("generate-failures",
                                       "write a cluster file with seeded failures of its nodes");
  app->add_option("--cluster", command->cluster, "cluster file, or NODESxGPUS")->required();
  const auto span = [&](const char* name, double& value, double unit, const char* help,
                        double most) {
    return app->add_option(name, value, help)
        ->transform(Span(unit))
        ->check(Finite())
        ->check(CLI::Range(1e-3, most));
  };
  span("--days", command->options.days, kSecondsADay, "failures that begin by then", 36'500)
      ->required();
  command->options.mtbf_hours = 720;
  command->options.repair_hours = 4;
  span("--mtbf-hours", command->options.mtbf_hours, kSecondsAnHour,
       "mean time in which a node is up", 1e6)
      ->capture_default_str();
  span("--repair-hours", command->options.repair_hours, kSecondsAnHour,
       "mean time in which it is down", 1e6)
      ->capture_default_str();
  app->add_option("--seed", command->options.seed, "seed of all draws")
      ->transform(Unsigned())
      ->capture_default_str();
  AddTarget(*app, command->target);
  app->callback([command, &chosen] { chosen.run = [command] { return Failures(*command); }; });
}

void AddGenerate(CLI::App& trace, Command& chosen) {
  auto command = std::make_shared<GenerateCommand>();
  CLI::App* app = trace.add_subcommand("generate", "make a seeded synthetic trace");
  command->app = app;
  app->add_option("--style", command->style, StyleHelp())
      ->check(CLI::IsMember(StyleNames()))
      ->capture_default_str();
  app->add_option("--jobs", command->jobs, "number of jobs")
      ->transform(WholeNumber())
      ->check(CLI::Range(1, 100'000'000));
  app->add_option("--seed", command->seed, "seed of all draws")
      ->transform(Unsigned())
      ->capture_default_str();
  app->add_option("--largest-job", command->largest_job, "GPUs of the largest jobs")
      ->transform(WholeNumber())
      ->check(Positive())
      ->capture_default_str();
  app->add_option("--format", command->format,
                  "what to write: native, jsonl, elasticflow, synergy or blox")
      ->check(CLI::IsMember({"native", "jsonl", "elasticflow", "synergy", "blox"}))
      ->capture_default_str();
  AddTarget(*app, command->target);
  AddMixOptions(*app, *command);
  AddElasticflowOptions(*app, *command);
  AddSynergyOptions(*app, *command);
  AddBloxOptions(*app, *command);
  AddGavelOptions(*app, *command);
  app->option_defaults()->group(kWorkloadGroup);
  AddWorkloadOptions(*app, command->workload);
  app->callback([command, &chosen] { chosen.run = [command] { return Generate(*command); }; });
}

void AddGenerateProfiles(CLI::App& trace, Command& chosen) {
  auto target = std::make_shared<Target>();
  CLI::App* profiles =
      trace.add_subcommand("generate-profiles", "write the synthetic profiles of generated traces");
  AddTarget(*profiles, *target);
  profiles->callback([target, &chosen] {
    chosen.run = [target]() -> Status {
      RETURN_IF_ERROR(CheckFree(*target));
      return WriteText(*target, trace::GenerateProfiles());
    };
  });
}

Status GenerateTraceFile(const std::vector<std::pair<std::string, std::string>>& options,
                         const std::string& path) {
  CLI::App app;
  Command chosen;
  AddGenerate(app, chosen);
  std::vector<std::string> words{"--force", "--out=" + path};  // the parser wants the last first
  for (const auto& [key, value] : options) {
    words.push_back(fmt::format("--{}={}", key, value));
  }
  words.emplace_back("generate");
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    return InvalidArgument(error.what());
  }
  return chosen.run();
}

}  // namespace trainyard::cli
