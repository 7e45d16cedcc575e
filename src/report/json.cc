// SPDX-License-Identifier: Apache-2.0
#include "report/json.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "io/csv_field.h"
#include "report/json_value.h"
#include "report/metrics.h"
#include "trainyard/version.h"

namespace trainyard {
namespace {

using Json = nlohmann::ordered_json;

Json TextOrNull(const std::string& text) { return text.empty() ? Json() : Json(text); }

// Names come from users' files and need not be UTF-8: what is not becomes U+FFFD.
std::string Text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

void AddCounts(const Metrics& metrics, Json& summary) {
  summary["jobs"] = metrics.jobs;
  summary["completed"] = metrics.completed;
  summary["rejected"] = metrics.rejected;
  summary["unfinished"] = metrics.unfinished;
  summary["admitted"] = metrics.admitted;
  summary["deadline_jobs"] = metrics.deadline_jobs;
  summary["deadlines_met"] = metrics.deadlines_met;
  summary["deadlines_late"] = metrics.deadlines_late;
  summary["deadlines_rejected"] = metrics.deadlines_rejected;
  summary["deadline_ratio"] = OrNull<Json>(metrics.deadline_ratio);
  summary["accepted"] = metrics.accepted;
  summary["declined"] = metrics.declined;
}

void AddTimes(const Metrics& metrics, Json& summary) {
  summary["jct_mean"] = OrNull<Json>(metrics.jct_mean);
  summary["jct_p50"] = OrNull<Json>(metrics.jct_p50);
  summary["jct_p90"] = OrNull<Json>(metrics.jct_p90);
  summary["jct_p99"] = OrNull<Json>(metrics.jct_p99);
  summary["makespan"] = OrNull<Json>(metrics.makespan);
  summary["queueing_delay_mean"] = OrNull<Json>(metrics.queueing_delay_mean);
  summary["waiting_time_mean"] = OrNull<Json>(metrics.waiting_time_mean);
  summary["fairness_mean"] = OrNull<Json>(metrics.fairness_mean);
  summary["fairness_max"] = OrNull<Json>(metrics.fairness_max);
}

void AddService(const Metrics& metrics, Json& summary) {
  summary["gpu_utilization"] = OrNull<Json>(metrics.gpu_utilization);
  summary["gpu_utilization_useful"] = OrNull<Json>(metrics.gpu_utilization_useful);
  summary["preemptions"] = OrNull<Json>(metrics.preemptions);
  summary["migrations"] = OrNull<Json>(metrics.migrations);
  summary["resizes"] = OrNull<Json>(metrics.resizes);
}

void AddCost(const RunResult& run, Json& summary) {
  summary["decisions"] = run.decisions;
  summary["events"] = run.events;
  summary["wall_seconds"] = run.wall_seconds;
  summary["cpu_seconds"] = run.cpu_seconds;
  summary["peak_rss_mb"] = run.peak_rss_mb;
  summary["jobs_per_second"] = OrNull<Json>(JobsPerSecond(run));
}

void AddSetting(const RunResult& run, Json& summary) {
  summary["policy"] = run.policy;
  summary["placement"] = run.placement;
  summary["admission"] = run.admission;
  summary["grouping"] = TextOrNull(run.grouping);
  summary["tuning"] = TextOrNull(run.tuning);
  summary["preset"] = TextOrNull(run.preset);
  summary["preset_sha256"] = TextOrNull(run.preset_sha256);
  summary["seed"] = run.seed;
  summary["cluster"] = run.cluster_name;
  summary["nodes"] = run.nodes;
  summary["gpus"] = run.gpus;
  summary["trace"] = run.trace_path;
  summary["trace_sha256"] = run.trace_sha256;
  summary["version"] = TRAINYARD_VERSION;
  summary["journal_digest"] = run.journal_digest;
}

Json Summary(const RunResult& run) {
  const Metrics metrics = Measure(run);
  Json summary = Json::object();
  AddCounts(metrics, summary);
  AddTimes(metrics, summary);
  AddService(metrics, summary);
  AddCost(run, summary);
  AddSetting(run, summary);
  return summary;
}

// Each with the key "label" before the others.
Json Summaries(std::span<const RunResult> runs) {
  Json summaries = Json::array();
  for (const RunResult& run : runs) {
    Json summary = Json::object();
    summary["label"] = run.label;
    summary.update(Summary(run));
    summaries.push_back(std::move(summary));
  }
  return summaries;
}

}  // namespace

std::string SummaryJson(const RunResult& run) { return Text(Summary(run), 2); }

std::string CompareJson(std::span<const RunResult> runs) { return Text(Summaries(runs), 2); }

namespace {

std::string KeyLine(const Json& summary) {
  std::string text;
  for (const auto& [key, value] : summary.items()) {
    text += (text.empty() ? "" : ",") + key;
  }
  return text;
}

// The label comes first.
std::string ValueLine(const Json& summary) {
  std::string text;
  for (const auto& [key, value] : summary.items()) {
    text += key == "label" ? "" : ",";
    AppendCsvField(value.is_null()     ? ""
                   : value.is_string() ? value.get<std::string>()
                                       : value.dump(),
                   text);
  }
  return text;
}

}  // namespace

std::string CompareCsv(std::span<const RunResult> runs) {
  std::string text;
  for (const Json& summary : Summaries(runs)) {
    if (text.empty()) {
      text += KeyLine(summary) + '\n';
    }
    text += ValueLine(summary) + '\n';
  }
  return text;
}

}  // namespace trainyard
