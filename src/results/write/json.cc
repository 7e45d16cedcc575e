// SPDX-License-Identifier: Apache-2.0
#include "results/write/json.h"

#include <utility>

#include "io/csv_field.h"
#include "results/metrics/metrics.h"
#include "results/write/json_value.h"
#include "trainyard/version.h"

namespace trainyard::results {
namespace {

Json MetricsJson(const Metrics& metrics) {
  return {{"jobs", metrics.jobs},
          {"completed", metrics.completed},
          {"rejected", metrics.rejected},
          {"unfinished", metrics.unfinished},
          {"admitted", metrics.admitted},
          {"deadline_jobs", metrics.deadline_jobs},
          {"deadlines_met", metrics.deadlines_met},
          {"deadlines_late", metrics.deadlines_late},
          {"deadlines_rejected", metrics.deadlines_rejected},
          {"deadline_ratio", metrics.deadline_ratio},
          {"accepted", metrics.accepted},
          {"declined", metrics.declined},
          {"jct_mean", metrics.jct_mean},
          {"jct_p50", metrics.jct_p50},
          {"jct_p90", metrics.jct_p90},
          {"jct_p99", metrics.jct_p99},
          {"makespan", metrics.makespan},
          {"queueing_delay_mean", metrics.queueing_delay_mean},
          {"waiting_time_mean", metrics.waiting_time_mean},
          {"bounded_slowdown_mean", metrics.bounded_slowdown_mean},
          {"fairness_mean", metrics.fairness_mean},
          {"fairness_max", metrics.fairness_max},
          {"gpu_utilization", metrics.gpu_utilization},
          {"gpu_utilization_useful", metrics.gpu_utilization_useful},
          {"preemptions", metrics.preemptions},
          {"migrations", metrics.migrations},
          {"resizes", metrics.resizes}};
}

Json Summary(const RunResult& run) {
  Json summary = MetricsJson(Measure(run));
  const auto add = [&summary]<typename T>(const char* key, const T& value,
                                          bool null_if_empty = false) {
    summary[key] = null_if_empty && value == T() ? Json() : Json(value);
  };
  ForEachCost(run, add);
  add("jobs_per_second", JobsPerSecond(run));
  ForEachSetting(run, add);
  add("version", std::string(TRAINYARD_VERSION));
  add("journal_digest", run.journal_digest);
  return summary;
}

// Each with the key "label" before the others.
Json Summaries(std::span<const RunResult> runs) {
  return ArrayOf(runs, [](const RunResult& run) {
    Json summary{{"label", run.label}};
    summary.update(Summary(run));
    return summary;
  });
}

}  // namespace

std::string SummaryJson(const RunResult& run) { return JsonText(Summary(run), 2); }

std::string CompareJson(std::span<const RunResult> runs) { return JsonText(Summaries(runs), 2); }

std::string CompareCsv(std::span<const RunResult> runs) {
  std::string heading;
  std::string text;
  for (const Json& summary : Summaries(runs)) {
    heading.clear();
    for (const auto& [key, value] : summary.items()) {
      heading += key + ',';
      io::AppendCsvField(value.is_null()     ? ""
                         : value.is_string() ? value.get<std::string>()
                                             : value.dump(),
                         text);
      text += ',';
    }
    heading.back() = text.back() = '\n';
  }
  return heading + text;
}

}  // namespace trainyard::results
