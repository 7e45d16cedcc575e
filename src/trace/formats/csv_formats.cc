// SPDX-License-Identifier: Apache-2.0
// The formats that are tables with one meaning for each column. docs/formats/ has a page for each.
#include <array>

#include "trace/csv_format.h"

namespace trainyard::trace {
namespace {

constexpr ColumnRule Needed(JobColumn field, std::string_view name,
                            std::string_view other_name = {}) {
  return {.field = field, .name = name, .other_name = other_name, .required = true};
}
constexpr ColumnRule Optional(JobColumn field, std::string_view name) {
  return {.field = field, .name = name};
}
constexpr ColumnRule Ignored(std::string_view name) {
  return {.field = JobColumn::kIgnored, .name = name};
}

constexpr ColumnRule InMilliseconds(ColumnRule rule) {
  rule.milliseconds = true;
  return rule;
}

// Trainyard's own format (docs/formats/native-trace.md): the columns of the table of a job's
// fields, and of tasks, which are never written.
constexpr auto kNativeRules = [] {
  std::array<ColumnRule, kNativeColumns + 2> rules;
  model::ForEachJobField<model::IsInTraces>([&rules](const auto& field) {
    for (std::size_t part = 0; part < field.columns(); ++part) {
      const JobColumn column = ColumnOf(field.info, part);
      rules.at(static_cast<std::size_t>(column)) = {
          .field = column,
          .name = field.info.columns.at(part),
          .required = field.info.required,
          .written_if_stated = column > Native("best_effort")};
    }
  });
  rules.at(kNativeColumns) = {.field = JobColumn::kTasks, .name = "tasks"};
  rules.at(kNativeColumns + 1) = {.field = JobColumn::kTasksPerNode, .name = "tasks_per_node"};
  return rules;
}();

// Job streams of the Blox simulators, in the order of handing over.
constexpr std::array kBloxColumns{
    Needed(Native("job_id"), "job_id"),
    Needed(Native("handover_time"), "handover_s"),
    Needed(Native("submit_time"), "submit_s"),
    Needed(Native("gpus"), "num_gpus"),
    Optional(JobColumn::kIterationTime, "iteration_time_s"),
    Needed(Native("iterations"), "total_iterations"),
    Ignored("model_class_id"),
    Ignored("kind"),
};

constexpr std::array kChronusColumns{
    Needed(Native("job_id"), "job_id"),
    Optional(Native("user"), "user"),
    Needed(Native("gpus"), "num_gpu"),
    Needed(Native("submit_time"), "submit_time"),
    Needed(Native("iterations"), "iterations"),
    Needed(Native("model"), "model_name"),
    Needed(Native("duration"), "duration"),
    Ignored("interval"),
    Needed(Native("target_times"), "expect_time_list"),
    Needed(Native("target_values"), "expect_value_list"),
    Needed(Native("best_effort"), "best_effort"),
    Optional(JobColumn::kTargetKind, "job_type"),
};

constexpr std::array kElasticflowColumns{
    Needed(Native("job_id"), "job_id"),
    Needed(Native("submit_time"), "submit_time", "submission_time"),
    Needed(Native("iterations"), "iteration", "num_iteration"),
    Needed(Native("model"), "model_name"),
    Needed(Native("deadline"), "ddl", "deadline"),
    Needed(Native("batch_size"), "batch_size"),
    Needed(Native("gpus"), "num_gpu"),
    Needed(Native("duration"), "duration"),
    Optional(Native("best_effort"), "best_effort"),
};

// The raw tables, from which the ElasticFlow traces were made.
constexpr std::array kItpColumns{
    Needed(Native("job_id"), "job_id"),
    Needed(Native("submit_time"), "submission_time", "submit_time"),
    Needed(Native("duration"), "duration"),
    Needed(Native("gpus"), "num_gpu", "gpus"),
    Optional(JobColumn::kStatus, "status"),
};

constexpr std::array kMuriColumns{
    Needed(Native("job_id"), "job_id"),
    Needed(Native("gpus"), "num_gpu"),
    InMilliseconds(Needed(Native("submit_time"), "submit_time")),
    Needed(Native("iterations"), "iterations"),
    Needed(Native("model"), "model_name"),
    Needed(JobColumn::kBatchPerGpu, "batch_size"),
    InMilliseconds(Needed(Native("duration"), "duration")),
    Ignored("interval"),
    InMilliseconds(Needed(Native("iteration_time"), "iteration_time")),
    InMilliseconds(Needed(Native("stage_0"), "resource_time_0")),
    InMilliseconds(Needed(Native("stage_1"), "resource_time_1")),
    InMilliseconds(Needed(Native("stage_2"), "resource_time_2")),
    Optional(Native("priority"), "priority"),
};

constexpr std::array kSiaColumns{
    Needed(Native("job_id"), "name"),           Needed(Native("submit_time"), "time"),
    Needed(Native("model"), "application"),     Needed(Native("gpus"), "num_replicas"),
    Needed(Native("batch_size"), "batch_size"), Optional(Native("deadline"), "ddl"),
};

// With 5 columns or with 12: what the longer form adds follows from the profiles and the cluster of
// the run, and is derived anew. The shorter form is written.
constexpr std::size_t kShortSynergy = 5;
constexpr std::array kSynergyColumns{
    Needed(Native("job_id"), "job_id"),
    Needed(Native("model"), "model"),
    Needed(Native("submit_time"), "arrival_s"),
    Needed(Native("iterations"), "total_iterations"),
    Needed(Native("gpus"), "gpus"),
    Optional(Native("duration"), "fair_duration_s"),
    Ignored("task"),
    Ignored("iter_time_s"),
    Ignored("cpu_demand"),
    Ignored("mem_demand_gb"),
    Ignored("sspeed_demand"),
    Ignored("speedup"),
};

// The simulator takes the work from `duration`; its other columns were for its plots.
constexpr std::array kTiresiasColumns{
    Needed(Native("job_id"), "job_id"),
    Needed(Native("gpus"), "num_gpu"),
    Needed(Native("submit_time"), "submit_time"),
    Needed(Native("model"), "model_name"),
    Needed(Native("duration"), "duration"),
    Ignored("iterations"),
    Ignored("interval"),
    Ignored("model_scale"),
};

constexpr double kMinute = 60;

}  // namespace

constexpr CsvFormat kNativeFormat{
    .shown = {.name = "native",
              .help = "Trainyard's own form (duration, iterations or both)",
              .has_cpu_jobs = true},
    .columns = kNativeRules,
    .takes_cpu_jobs = true};
constexpr CsvFormat kBloxFormat{
    .shown = {.name = "blox", .help = "Blox simulators (work is iterations x iteration time)"},
    .columns = kBloxColumns,
    .iteration_time = 1};
constexpr CsvFormat kChronusFormat{
    .shown = {.name = "chronus", .help = "Chronus simulator (soft deadlines; in minutes)"},
    .columns = kChronusColumns,
    .unit = kMinute,
    .leaves_out_gpuless = true};
constexpr CsvFormat kElasticflowFormat{
    .shown = {.name = "elasticflow", .help = "ElasticFlow artifact, elasticflow-traces (derived)"},
    .columns = kElasticflowColumns,
    .ignores_others = true};
constexpr CsvFormat kItpFormat{
    .shown = {.name = "itp", .help = "Microsoft ITP, raw (no models; failed jobs are left out)"},
    .columns = kItpColumns};
constexpr CsvFormat kMuriFormat{
    .shown = {.name = "muri", .help = "Muri simulator (times in ms, stage times of each job)"},
    .columns = kMuriColumns};
constexpr CsvFormat kSiaFormat{
    .shown = {.name = "sia", .help = "Pollux and Sia workloads (state no work)"},
    .columns = kSiaColumns,
    .ignores_others = true,
    .states_no_work = true};
constexpr CsvFormat kSynergyFormat{
    .shown = {.name = "synergy", .help = "Synergy simulator (work is whole iterations)"},
    .columns = kSynergyColumns};
constexpr CsvFormat kShortSynergyFormat{.shown = kSynergyFormat.shown,
                                        .columns = std::span(kSynergyColumns).first(kShortSynergy)};
constexpr CsvFormat kTiresiasFormat{
    .shown = {.name = "tiresias", .help = "Tiresias simulator (work is the duration)"},
    .columns = kTiresiasColumns};

std::span<const CsvFormat> CsvFormats() {
  static const std::array kFormats{kNativeFormat,      kBloxFormat,    kChronusFormat,
                                   kElasticflowFormat, kItpFormat,     kMuriFormat,
                                   kSiaFormat,         kSynergyFormat, kTiresiasFormat};
  return kFormats;
}

}  // namespace trainyard::trace
