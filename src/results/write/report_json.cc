// SPDX-License-Identifier: Apache-2.0
#include "results/write/report_json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/check.h"
#include "results/metrics/curves.h"
#include "results/metrics/gantt.h"
#include "results/metrics/metrics.h"
#include "results/metrics/settings.h"
#include "results/write/json.h"
#include "results/write/json_value.h"
#include "trainyard/version.h"

namespace trainyard::results {
namespace {

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
  return {{"path", run.trace_path}, {"sha256", run.trace_sha256}, {"jobs", run.jobs.size()},
          {"first_submit", first},  {"last_submit", last},        {"gpu_hours", GpuHours(run)}};
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
  return ArrayOf(JctBySize(run), [](const SizeClass& size) -> Json {
    return {{"gpus", size.gpus},
            {"jobs", size.jobs},
            {"jct_mean", size.jct_mean},
            {"queueing_delay_mean", size.queueing_delay_mean}};
  });
}

// Whether it is known which job held which GPUs.
bool NamesGpus(const RunResult& run) {
  return run.allocations && !run.allocations->holdings.empty();
}

Json TimelineJson(const RunResult& run) {
  const TimePoint zero = FirstSubmit(run).value_or(TimePoint{});
  const std::vector<TimelineSample> samples = ThinTimeline(run.timeline, kTimelinePointsMax);
  const auto column = [&samples](auto value_of) { return ArrayOf(samples, value_of); };
  return {{"time", column([zero](const TimelineSample& at) { return Seconds(at.time - zero); })},
          {"gpus_used", column([](const TimelineSample& at) { return at.gpus_used; })},
          {"jobs_running", column([](const TimelineSample& at) { return at.jobs_running; })},
          {"jobs_pending", column([](const TimelineSample& at) { return at.jobs_pending; })},
          {"gpus_fragmented", NamesGpus(run) ? column([](const TimelineSample& at) {
             return Rounded(at.gpus_fragmented, 1e3);
           })
                                             : Json()}};
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
  std::vector<Share> shares = SharesBy(name, run);
  Share rest;
  for (std::size_t i = kSharesMax; i < shares.size(); ++i) {
    rest.jobs += shares[i].jobs;
    rest.gpu_seconds += shares[i].gpu_seconds;
  }
  shares.resize(std::min(shares.size(), kSharesMax));
  const auto json_of = [](const Json& label, const Share& share) -> Json {
    return {{"name", label},
            {"jobs", share.jobs},
            {"gpu_seconds", share.gpu_seconds},
            {"jct_mean", share.jct_mean}};
  };
  Json json = ArrayOf(shares, [&](const Share& share) { return json_of(share.name, share); });
  if (rest.jobs > 0) {
    json.push_back(json_of(nullptr, rest));
  }
  return json;
}

// A column of few distinct texts: the texts, and for each job the place of its own.
Json TextColumn(const std::vector<const JobSpec*>& jobs, std::string JobSpec::*text) {
  std::map<std::string, std::size_t> places;
  std::vector<std::string> texts;
  Json of = Json::array();
  for (const JobSpec* job : jobs) {
    const auto [at, is_new] = places.emplace(job->*text, texts.size());
    if (is_new) {
      texts.push_back(job->*text);
    }
    of.push_back(at->second);
  }
  return {{"names", texts}, {"of", of}};
}

// The jobs that appear in a Gantt chart, numbered anew.
class ShownJobs {
 public:
  std::size_t Number(std::uint32_t row) {
    const auto [at, is_new] = numbers_.emplace(row, rows_.size());
    if (is_new) {
      rows_.push_back(row);
    }
    return at->second;
  }

  [[nodiscard]] Json Columns(const RunResult& run) const {
    const TimePoint zero = FirstSubmit(run).value_or(TimePoint{});
    std::vector<const JobSpec*> jobs;
    jobs.reserve(rows_.size());
    for (const std::uint32_t row : rows_) {
      jobs.push_back(run.jobs[row].spec);
    }
    return {{"name", ArrayOf(jobs, [](const JobSpec* job) { return job->name; })},
            {"gpus", ArrayOf(jobs, [](const JobSpec* job) { return job->gpus; })},
            {"submit", ArrayOf(jobs,
                               [zero](const JobSpec* job) {
                                 return Rounded(Seconds(job->submit - zero), 1e3);
                               })},
            {"user", TextColumn(jobs, &JobSpec::user)},
            {"queue", TextColumn(jobs, &JobSpec::queue)},
            {"model", TextColumn(jobs, &JobSpec::model)}};
  }

 private:
  std::map<std::uint32_t, std::size_t> numbers_;
  std::vector<std::uint32_t> rows_;
};

template <typename NodeNumber>
Json CellsJson(const Gantt& gantt, NodeNumber node_number) {
  const auto column = [&gantt](auto value_of) { return ArrayOf(gantt.cells, value_of); };
  return {{"column_units", gantt.column_units},
          {"node", column([&](const GanttCell& cell) { return node_number(cell.node); })},
          {"column", column([](const GanttCell& cell) { return cell.column; })},
          {"gpus", column([](const GanttCell& cell) { return Rounded(cell.gpus, 1e2); })}};
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
  const auto column = [&gantt](auto value_of) { return ArrayOf(gantt.bars, value_of); };
  std::int64_t last = 0;
  return {{"unit", gantt.unit},
          {"complete", run.allocations->complete},
          {"bars_left_out", gantt.bars_left_out},
          {"job", column([&](const GanttBar& bar) { return jobs.Number(bar.job); })},
          {"node", column([&](const GanttBar& bar) { return node_number(bar.node); })},
          {"first_gpu", column([](const GanttBar& bar) { return bar.first_gpu; })},
          {"gpus", column([](const GanttBar& bar) { return bar.gpus; })},
          {"after", column([&last](const GanttBar& bar) {
             return bar.start - std::exchange(last, bar.start);
           })},
          {"length", column([](const GanttBar& bar) { return bar.length; })},
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

Json CellJson(const ReportTable::Cell& cell) {
  return std::visit(
      [](const auto& value) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>) {
          return Json();
        } else {
          return Json(value);
        }
      },
      cell);
}

Json TableJson(const ReportTable& table) {
  constexpr std::array kUnits{"", "s", "share"};  // by ReportTable::Unit
  return {{"title", table.title},
          {"caption", table.caption},
          {"columns", ArrayOf(table.columns,
                              [&kUnits](const ReportTable::Column& column) -> Json {
                                return {{"name", column.name},
                                        {"unit", kUnits.at(static_cast<std::size_t>(column.unit))}};
                              })},
          {"rows", ArrayOf(table.rows, [&table](const std::vector<ReportTable::Cell>& row) {
             CHECK(row.size() == table.columns.size());
             return ArrayOf(row, CellJson);
           })}};
}

Json SettingsJson(const RunResult& run) {
  return ArrayOf(SettingsOf(run), [](const RunSetting& setting) -> Json {
    return {{"name", setting.name}, {"value", setting.value}};
  });
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
              {"runs", ArrayOf(runs, RunJson)}};
  AddGantts(runs, report);
  report["explanations"] = ArrayOf(explanations, TableJson);
  return JsonText(report);
}

}  // namespace trainyard::results
