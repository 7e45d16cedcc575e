// SPDX-License-Identifier: Apache-2.0
#include "report/json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "report/curves.h"
#include "report/metrics.h"
#include "trainyard/version.h"

namespace trainyard {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kVersion = TRAINYARD_VERSION;
constexpr std::size_t kCdfPointsMax = 1000;
constexpr std::size_t kTimelinePointsMax = 2000;

Json OrNull(std::optional<double> value) { return value ? Json(*value) : Json(); }

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
  summary["deadline_ratio"] = OrNull(metrics.deadline_ratio);
  summary["accepted"] = metrics.accepted;
  summary["declined"] = metrics.declined;
}

void AddTimes(const Metrics& metrics, Json& summary) {
  summary["jct_mean"] = OrNull(metrics.jct_mean);
  summary["jct_p50"] = OrNull(metrics.jct_p50);
  summary["jct_p90"] = OrNull(metrics.jct_p90);
  summary["jct_p99"] = OrNull(metrics.jct_p99);
  summary["makespan"] = OrNull(metrics.makespan);
  summary["queueing_delay_mean"] = OrNull(metrics.queueing_delay_mean);
  summary["waiting_time_mean"] = OrNull(metrics.waiting_time_mean);
}

void AddService(const Metrics& metrics, Json& summary) {
  summary["gpu_utilization"] = OrNull(metrics.gpu_utilization);
  summary["gpu_utilization_useful"] = OrNull(metrics.gpu_utilization_useful);
  summary["preemptions"] = metrics.preemptions;
  summary["migrations"] = metrics.migrations;
  summary["resizes"] = metrics.resizes;
}

void AddCost(const RunResult& run, Json& summary) {
  summary["decisions"] = run.decisions;
  summary["events"] = run.events;
  summary["wall_seconds"] = run.wall_seconds;
  summary["cpu_seconds"] = run.cpu_seconds;
  summary["peak_rss_mb"] = run.peak_rss_mb;
  summary["jobs_per_second"] = OrNull(JobsPerSecond(run));
}

void AddSetting(const RunResult& run, Json& summary) {
  summary["policy"] = run.policy;
  summary["placement"] = run.placement;
  summary["admission"] = run.admission;
  summary["preset"] = run.preset.empty() ? Json() : Json(run.preset);
  summary["seed"] = run.seed;
  summary["cluster"] = run.cluster_name;
  summary["trace_sha256"] = run.trace_sha256;
  summary["version"] = kVersion;
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

// The GPU time that the trace asks for; none if a job does not say how long it takes.
std::optional<double> GpuHours(const RunResult& run) {
  double gpu_seconds = 0;
  for (const JobResult& job : run.jobs) {
    if (!job.spec->duration) {
      return std::nullopt;
    }
    gpu_seconds += job.spec->gpus * Seconds(*job.spec->duration);
  }
  return gpu_seconds / 3600;
}

Json TraceJson(const RunResult& run) {
  std::optional<double> first;
  std::optional<double> last;
  for (const JobResult& job : run.jobs) {
    const double submit = Seconds(job.spec->submit);
    first = std::min(first.value_or(submit), submit);
    last = std::max(last.value_or(submit), submit);
  }
  return {{"path", run.trace_path},      {"sha256", run.trace_sha256},
          {"jobs", run.jobs.size()},     {"first_submit", OrNull(first)},
          {"last_submit", OrNull(last)}, {"gpu_hours", OrNull(GpuHours(run))}};
}

Json CdfJson(std::vector<double> values) {
  Cdf cdf = MakeCdf(std::move(values), kCdfPointsMax);
  // Finer than any screen; the digits beyond would double the size of the page.
  for (double& fraction : cdf.fraction) {
    fraction = std::round(fraction * 1e6) / 1e6;
  }
  return {{"seconds", std::move(cdf.seconds)}, {"fraction", std::move(cdf.fraction)}};
}

Json SizesJson(const RunResult& run) {
  Json sizes = Json::array();
  for (const SizeClass& size : JctBySize(run)) {
    sizes.push_back({{"gpus", size.gpus},
                     {"jobs", size.jobs},
                     {"jct_mean", OrNull(size.jct_mean)},
                     {"queueing_delay_mean", OrNull(size.queueing_delay_mean)}});
  }
  return sizes;
}

Json TimelineJson(const RunResult& run) {
  const TimePoint zero = FirstSubmit(run).value_or(TimePoint{});
  Json time = Json::array();
  Json gpus_used = Json::array();
  Json jobs_running = Json::array();
  Json jobs_pending = Json::array();
  for (const TimelineSample& sample : ThinTimeline(run.timeline, kTimelinePointsMax)) {
    time.push_back(Seconds(sample.time - zero));
    gpus_used.push_back(sample.gpus_used);
    jobs_running.push_back(sample.jobs_running);
    jobs_pending.push_back(sample.jobs_pending);
  }
  return {{"time", std::move(time)},
          {"gpus_used", std::move(gpus_used)},
          {"jobs_running", std::move(jobs_running)},
          {"jobs_pending", std::move(jobs_pending)}};
}

Json RunJson(const RunResult& run) {
  return {{"label", run.label},
          {"policy", run.policy},
          {"placement", run.placement},
          {"admission", run.admission},
          {"preset", run.preset},
          {"summary", Summary(run)},
          {"jct_cdf", CdfJson(JctsOfCompleted(run))},
          {"queueing_cdf", CdfJson(QueueingDelaysOfCompleted(run))},
          {"jct_by_size", SizesJson(run)},
          {"timeline", TimelineJson(run)}};
}

}  // namespace

std::string SummaryJson(const RunResult& run) { return Text(Summary(run), 2); }

std::string CompareJson(std::span<const RunResult> runs) {
  Json summaries = Json::array();
  for (const RunResult& run : runs) {
    Json summary = Json::object();
    summary["label"] = run.label;
    summary.update(Summary(run));
    summaries.push_back(std::move(summary));
  }
  return Text(summaries, 2);
}

std::string ReportJson(std::span<const RunResult> runs, const std::string& command) {
  CHECK(!runs.empty());
  const RunResult& first = runs.front();
  Json report{
      {"format", "trainyard-report/1"},
      {"program", {{"name", "trainyard"}, {"version", kVersion}}},
      {"command", command},
      {"trace", TraceJson(first)},
      {"cluster", {{"name", first.cluster_name}, {"nodes", first.nodes}, {"gpus", first.gpus}}},
      {"runs", Json::array()}};
  for (const RunResult& run : runs) {
    report["runs"].push_back(RunJson(run));
  }
  return Text(report, -1);
}

}  // namespace trainyard
