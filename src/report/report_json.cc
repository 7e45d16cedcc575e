// SPDX-License-Identifier: Apache-2.0
#include "report/report_json.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/check.h"
#include "report/curves.h"
#include "report/gantt.h"
#include "report/gpu_time.h"
#include "report/json.h"
#include "report/json_value.h"
#include "report/metrics.h"
#include "report/settings.h"
#include "trainyard/version.h"

namespace trainyard {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kCdfPointsMax = 1000;
constexpr std::size_t kTimelinePointsMax = 2000;
constexpr std::size_t kSharesMax = 100;
// Of all runs together: about 25 bytes for a bar.
constexpr std::size_t kBarsMax = 160'000;
constexpr std::size_t kBarsOfRunMax = 60'000;
constexpr std::size_t kCellsOfRunMax = 20'000;

// To so many decimals: the digits beyond would double the size of the page.
double Rounded(double value, double decimals_power) {
  return std::round(value * decimals_power) / decimals_power;
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
  return {{"path", run.trace_path},
          {"sha256", run.trace_sha256},
          {"jobs", run.jobs.size()},
          {"first_submit", OrNull<Json>(first)},
          {"last_submit", OrNull<Json>(last)},
          {"gpu_hours", OrNull<Json>(GpuHours(run))}};
}

// Results of published programs do not say on which cluster they ran.
Json ClusterJson(const RunResult& run) {
  const auto or_null = [](std::int64_t count) { return count > 0 ? Json(count) : Json(); };
  return {{"name", run.cluster_name}, {"nodes", or_null(run.nodes)}, {"gpus", or_null(run.gpus)}};
}

// `name` says what the values are.
Json CdfJson(const char* name, std::vector<double> values) {
  Cdf cdf = MakeCdf(std::move(values), kCdfPointsMax);
  for (double& fraction : cdf.fraction) {
    fraction = Rounded(fraction, 1e6);
  }
  return {{name, std::move(cdf.seconds)}, {"fraction", std::move(cdf.fraction)}};
}

std::vector<double> FairnessOfCompleted(const RunResult& run) {
  std::vector<double> values;
  for (const JobResult& job : run.jobs) {
    if (const std::optional<double> fairness = FinishTimeFairness(job, run)) {
      values.push_back(Rounded(*fairness, 1e6));
    }
  }
  return values;
}

Json SizesJson(const RunResult& run) {
  Json sizes = Json::array();
  for (const SizeClass& size : JctBySize(run)) {
    sizes.push_back({{"gpus", size.gpus},
                     {"jobs", size.jobs},
                     {"jct_mean", OrNull<Json>(size.jct_mean)},
                     {"queueing_delay_mean", OrNull<Json>(size.queueing_delay_mean)}});
  }
  return sizes;
}

// Whether it is known who held which GPUs.
bool NamesGpus(const RunResult& run) {
  return run.allocations && !run.allocations->holdings.empty();
}

Json TimelineJson(const RunResult& run) {
  const TimePoint zero = FirstSubmit(run).value_or(TimePoint{});
  Json time = Json::array();
  Json gpus_used = Json::array();
  Json jobs_running = Json::array();
  Json jobs_pending = Json::array();
  Json gpus_fragmented = Json::array();
  for (const TimelineSample& sample : ThinTimeline(run.timeline, kTimelinePointsMax)) {
    time.push_back(Seconds(sample.time - zero));
    gpus_used.push_back(sample.gpus_used);
    jobs_running.push_back(sample.jobs_running);
    jobs_pending.push_back(sample.jobs_pending);
    gpus_fragmented.push_back(Rounded(sample.gpus_fragmented, 1e3));
  }
  return {{"time", std::move(time)},
          {"gpus_used", std::move(gpus_used)},
          {"jobs_running", std::move(jobs_running)},
          {"jobs_pending", std::move(jobs_pending)},
          {"gpus_fragmented", NamesGpus(run) ? std::move(gpus_fragmented) : Json()}};
}

Json GpuTimeJson(const RunResult& run) {
  const std::optional<GpuTime> time = GpuTimeOf(run);
  if (!time) {
    return {};
  }
  return {{"useful", time->useful}, {"overhead", time->overhead}, {"idle", time->idle}};
}

// The greatest, and one without a name for the rest.
Json SharesJson(std::string JobSpec::*name, const RunResult& run) {
  Json shares = Json::array();
  const std::vector<Share> all = SharesBy(name, run);
  Share rest;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Share& share = all[i];
    if (i < kSharesMax) {
      shares.push_back({{"name", share.name},
                        {"jobs", share.jobs},
                        {"gpu_seconds", share.gpu_seconds},
                        {"jct_mean", OrNull<Json>(share.jct_mean)}});
    } else {
      rest.jobs += share.jobs;
      rest.gpu_seconds += share.gpu_seconds;
    }
  }
  if (rest.jobs > 0) {
    shares.push_back({{"name", Json()},
                      {"jobs", rest.jobs},
                      {"gpu_seconds", rest.gpu_seconds},
                      {"jct_mean", Json()}});
  }
  return shares;
}

// The jobs that appear in a Gantt chart, numbered anew.
class ShownJobs {
 public:
  std::size_t Number(std::uint32_t row) {
    return numbers_.emplace(row, numbers_.size()).first->second;
  }
  [[nodiscard]] Json Columns(const RunResult& run) const;

 private:
  std::map<std::uint32_t, std::size_t> numbers_;
};

// A column of few distinct texts: the texts, and for each row the place of its own.
class TextColumn {
 public:
  void Add(const std::string& text) {
    const auto [at, is_new] = places_.emplace(text, texts_.size());
    if (is_new) {
      texts_.push_back(text);
    }
    rows_.push_back(at->second);
  }
  [[nodiscard]] Json Columns() const { return {{"names", texts_}, {"of", rows_}}; }

 private:
  std::map<std::string, std::size_t> places_;
  std::vector<std::string> texts_;
  std::vector<std::size_t> rows_;
};

Json ShownJobs::Columns(const RunResult& run) const {
  std::vector<std::uint32_t> rows(numbers_.size());
  for (const auto& [row, number] : numbers_) {
    rows[number] = row;
  }
  const TimePoint zero = FirstSubmit(run).value_or(TimePoint{});
  Json names = Json::array();
  Json gpus = Json::array();
  Json submit = Json::array();
  TextColumn users;
  TextColumn queues;
  TextColumn models;
  for (const std::uint32_t row : rows) {
    const JobSpec& job = *run.jobs[row].spec;
    names.push_back(job.name);
    gpus.push_back(job.gpus);
    submit.push_back(Rounded(Seconds(job.submit - zero), 1e3));
    users.Add(job.user);
    queues.Add(job.queue);
    models.Add(job.model);
  }
  return {{"name", std::move(names)}, {"gpus", std::move(gpus)},   {"submit", std::move(submit)},
          {"user", users.Columns()},  {"queue", queues.Columns()}, {"model", models.Columns()}};
}

template <typename NodeNumber>
Json CellsJson(const Gantt& gantt, NodeNumber node_number) {
  Json node = Json::array();
  Json column = Json::array();
  Json gpus = Json::array();
  for (const GanttCell& cell : gantt.cells) {
    node.push_back(node_number(cell.node));
    column.push_back(cell.column);
    gpus.push_back(Rounded(cell.gpus, 1e2));
  }
  return {{"column_units", gantt.column_units},
          {"node", std::move(node)},
          {"column", std::move(column)},
          {"gpus", std::move(gpus)}};
}

// The nodes of all runs. Runs that were read back from files name only those that were used.
class ShownNodes {
 public:
  explicit ShownNodes(std::span<const RunResult> runs) {
    std::vector<const Allocations*> all;
    for (const RunResult& run : runs) {
      if (NamesGpus(run)) {
        all.push_back(&*run.allocations);
      }
    }
    std::stable_sort(all.begin(), all.end(), [](const Allocations* a, const Allocations* b) {
      return a->nodes.size() > b->nodes.size();
    });
    for (const Allocations* allocations : all) {
      for (const Allocations::Node& node : allocations->nodes) {
        Add(node);
      }
    }
  }
  [[nodiscard]] std::size_t Number(const Allocations::Node& node) const {
    return numbers_.at(node.name);
  }
  [[nodiscard]] bool empty() const { return gpus_.empty(); }
  [[nodiscard]] Json Columns() const { return {{"name", names_}, {"gpus", gpus_}}; }

 private:
  void Add(const Allocations::Node& node) {
    const auto [at, is_new] = numbers_.emplace(node.name, names_.size());
    if (is_new) {
      names_.push_back(node.name);
      gpus_.push_back(node.gpus);
    }
    gpus_[at->second] = std::max(gpus_[at->second], node.gpus);
  }

  std::map<std::string, std::size_t> numbers_;
  std::vector<std::string> names_;
  std::vector<int> gpus_;
};

Json GanttJson(const RunResult& run, std::size_t bars_max, const ShownNodes& nodes,
               ShownJobs& jobs) {
  const auto node_number = [&](std::uint32_t node) {
    return nodes.Number(run.allocations->nodes[node]);
  };
  const Gantt gantt = MakeGantt(run, bars_max, kCellsOfRunMax);
  Json job = Json::array();
  Json node = Json::array();
  Json first_gpu = Json::array();
  Json gpus = Json::array();
  Json after = Json::array();
  Json length = Json::array();
  std::int64_t last = 0;
  for (const GanttBar& bar : gantt.bars) {
    job.push_back(jobs.Number(bar.job));
    node.push_back(node_number(bar.node));
    first_gpu.push_back(bar.first_gpu);
    gpus.push_back(bar.gpus);
    after.push_back(bar.start - std::exchange(last, bar.start));
    length.push_back(bar.length);
  }
  return {{"unit", gantt.unit},
          {"complete", run.allocations->complete},
          {"bars_left_out", gantt.bars_left_out},
          {"job", std::move(job)},
          {"node", std::move(node)},
          {"first_gpu", std::move(first_gpu)},
          {"gpus", std::move(gpus)},
          {"after", std::move(after)},
          {"length", std::move(length)},
          {"cells", CellsJson(gantt, node_number)}};
}

// Adds what the Gantt charts show, to the report and to its runs.
void AddGantts(std::span<const RunResult> runs, Json& report) {
  const ShownNodes nodes(runs);
  if (nodes.empty()) {
    return;
  }
  report["cluster"]["node"] = nodes.Columns();
  const std::size_t bars_max = std::min(kBarsOfRunMax, kBarsMax / runs.size());
  ShownJobs jobs;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (NamesGpus(runs[i])) {
      report["runs"][i]["gantt"] = GanttJson(runs[i], bars_max, nodes, jobs);
    }
  }
  report["jobs"] = jobs.Columns(runs.front());
}

const char* UnitName(ReportTable::Unit unit) {
  switch (unit) {
    case ReportTable::Unit::kNone:
      return "";
    case ReportTable::Unit::kSeconds:
      return "s";
    case ReportTable::Unit::kShare:
      return "share";
  }
  return "";
}

Json CellJson(const ReportTable::Cell& cell) {
  if (const auto* number = std::get_if<double>(&cell)) {
    return *number;
  }
  const auto* text = std::get_if<std::string>(&cell);
  return text == nullptr ? Json() : Json(*text);
}

Json TableJson(const ReportTable& table) {
  Json columns = Json::array();
  for (const ReportTable::Column& column : table.columns) {
    columns.push_back({{"name", column.name}, {"unit", UnitName(column.unit)}});
  }
  Json rows = Json::array();
  for (const std::vector<ReportTable::Cell>& row : table.rows) {
    CHECK(row.size() == table.columns.size());
    Json cells = Json::array();
    for (const ReportTable::Cell& cell : row) {
      cells.push_back(CellJson(cell));
    }
    rows.push_back(std::move(cells));
  }
  return {{"title", table.title},
          {"caption", table.caption},
          {"columns", std::move(columns)},
          {"rows", std::move(rows)}};
}

Json SettingsJson(const RunResult& run) {
  Json settings = Json::array();
  for (const RunSetting& setting : SettingsOf(run)) {
    settings.push_back({{"name", setting.name}, {"value", setting.value}});
  }
  return settings;
}

Json RunJson(const RunResult& run) {
  return {{"label", run.label},
          {"policy", run.policy},
          {"placement", run.placement},
          {"admission", run.admission},
          {"grouping", run.grouping},
          {"tuning", run.tuning},
          {"preset", run.preset},
          {"candidates", run.candidates},
          {"settings", SettingsJson(run)},
          {"ends_only", run.ends_only},
          {"summary", Json::parse(SummaryJson(run))},
          {"jct_cdf", CdfJson("seconds", JctsOfCompleted(run))},
          {"queueing_cdf", CdfJson("seconds", QueueingDelaysOfCompleted(run))},
          {"fairness_cdf", CdfJson("ratio", FairnessOfCompleted(run))},
          {"jct_by_size", SizesJson(run)},
          {"gpu_time", GpuTimeJson(run)},
          {"users", SharesJson(&JobSpec::user, run)},
          {"queues", SharesJson(&JobSpec::queue, run)},
          {"models", SharesJson(&JobSpec::model, run)},
          {"timeline", TimelineJson(run)}};
}

}  // namespace

std::string ReportJson(std::span<const RunResult> runs, const std::string& command,
                       std::span<const ReportTable> explanations) {
  CHECK(!runs.empty());
  const RunResult& first = runs.front();
  Json report{{"format", "trainyard-report/2"},
              {"program", {{"name", "trainyard"}, {"version", TRAINYARD_VERSION}}},
              {"command", command},
              {"trace", TraceJson(first)},
              {"cluster", ClusterJson(first)},
              {"runs", Json::array()}};
  for (const RunResult& run : runs) {
    report["runs"].push_back(RunJson(run));
  }
  AddGantts(runs, report);
  report["explanations"] = Json::array();
  for (const ReportTable& table : explanations) {
    report["explanations"].push_back(TableJson(table));
  }
  // Names come from users' files and need not be UTF-8: what is not becomes U+FFFD.
  return report.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace trainyard
