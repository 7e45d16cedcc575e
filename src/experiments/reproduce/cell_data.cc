// SPDX-License-Identifier: Apache-2.0
#include "experiments/reproduce/cell_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <tuple>

#include "io/json.h"
#include "results/metrics/curves.h"
#include "results/metrics/metrics.h"
#include "trainyard/ids.h"

namespace trainyard::experiments {
namespace {

constexpr std::size_t kCurvePoints = 400;
constexpr std::size_t kCdfPoints = 200;
constexpr double kWindow = 600;  // seconds
constexpr double kHour = 3600;

constexpr std::array kMetricNames{
    MetricName{"jct_mean", "mean JCT", "s", 1}, MetricName{"jct_mean_hours", "mean JCT", "h", 2},
    MetricName{"jct_p99", "p99 of JCT", "s", 1}, MetricName{"jct_p99.9", "p99.9 of JCT", "s", 1},
    MetricName{"jct_p99_rank", "p99 of JCT", "s", 1},
    MetricName{"jct_p99_ceil", "p99 of JCT", "s", 1}, MetricName{"makespan", "makespan", "s", 1},
    MetricName{"makespan_hours", "makespan", "h", 2}, MetricName{"last_end", "makespan", "s", 1},
    MetricName{"deadlines_met", "deadlines met", "", 0},
    MetricName{"deadline_ratio", "share of deadlines met", "", 4},
    MetricName{"best_effort_jct_mean", "mean JCT of best-effort jobs", "s", 1},
    MetricName{"queueing_delay_mean", "mean wait for the first GPUs", "s", 1},
    MetricName{"waiting_time_mean", "mean time without GPUs", "s", 1},
    MetricName{"preemptions", "preemptions", "", 0},
    MetricName{"gpu_hours_mean", "mean GPU-hours of a job", "h", 2},
    MetricName{"gpus_used", "mean GPUs in use", "", 1},
    MetricName{"jobs_pending", "mean waiting jobs", "", 1},
    MetricName{"cluster_efficiency", "mean cluster efficiency", "", 3},
    // Of a loader scenario, which is no run.
    MetricName{"throughput", "throughput", "images/s", 1}};
constexpr std::array<std::string_view, 6> kCurves{
    "jct", "gpus_used", "jobs_pending", "cluster_efficiency", "submitted", "deadlines_met"};

using Jobs = std::vector<const results::JobResult*>;

Jobs JobsOf(const results::RunResult& run, const world::TrackedJobs* tracked) {
  Jobs jobs;
  for (std::size_t i = 0; i < run.jobs.size(); ++i) {
    if (tracked == nullptr || (Index(tracked->first) <= i && i <= Index(tracked->second))) {
      jobs.push_back(&run.jobs[i]);
    }
  }
  return jobs;
}

// Keeps what applies.
void Set(CellData& data, const std::string& name, const std::optional<double>& value) {
  if (value && std::isfinite(*value)) {
    data.numbers[name] = *value;
  }
}

// In hours, too.
void SetSeconds(CellData& data, const std::string& name, const std::optional<double>& seconds) {
  if (seconds) {
    Set(data, name, *seconds);
    Set(data, name + "_hours", *seconds / kHour);
  }
}

void AddJcts(const results::RunResult& run, const Jobs& jobs, CellData& data) {
  std::vector<double> seconds;
  results::MeanDuration all;
  results::MeanDuration best_effort;
  for (const results::JobResult* job : jobs) {
    if (const std::optional<Duration> jct = results::Jct(*job, run)) {
      seconds.push_back(Seconds(*jct));
      all.Add(*jct);
      if (job->spec->best_effort) {
        best_effort.Add(*jct);
      }
    }
  }
  SetSeconds(data, "jct_mean", all.seconds());
  Set(data, "best_effort_jct_mean", best_effort.seconds());
  if (seconds.empty()) {
    return;
  }
  std::sort(seconds.begin(), seconds.end());
  const auto count = static_cast<double>(seconds.size());
  const auto at = [&seconds](double rank) { return seconds[static_cast<std::size_t>(rank)]; };
  Set(data, "jct_p99", results::Percentile(seconds, 0.99));
  Set(data, "jct_p99.9", results::Percentile(seconds, 0.999));
  Set(data, "jct_p99_rank", at(std::floor(0.99 * count)));
  Set(data, "jct_p99_ceil", at(std::ceil(0.99 * count) - 1));
  results::Cdf cdf = results::MakeCdf(std::move(seconds), kCdfPoints);
  data.curves["jct"] = {.x = std::move(cdf.seconds), .y = std::move(cdf.fraction)};
}

void AddSpan(const results::RunResult& run, const Jobs& jobs, CellData& data) {
  std::optional<TimePoint> last;
  std::optional<TimePoint> first;
  for (const results::JobResult* job : jobs) {
    first = first ? std::min(*first, job->spec->submit) : job->spec->submit;
    if (const std::optional<TimePoint> end = results::CountedEnd(*job, run)) {
      last = last ? std::max(*last, *end) : *end;
    }
  }
  if (last) {
    Set(data, "last_end", Seconds(*last));
    SetSeconds(data, "makespan", Seconds(*last - *first));
  }
}

void AddDeadlines(const results::RunResult& run, const Jobs& jobs, CellData& data) {
  double met = 0;
  double missed = 0;
  for (const results::JobResult* job : jobs) {
    const std::optional<bool> in_time = results::DeadlineMet(*job, run);
    met += in_time.value_or(false) ? 1 : 0;
    missed += in_time ? (*in_time ? 0 : 1) : (job->outcome == results::Outcome::kRejected ? 1 : 0);
  }
  if (met + missed > 0) {
    Set(data, "deadlines_met", met);
    Set(data, "deadline_ratio", met / (met + missed));
  }
}

void AddWaits(const Jobs& jobs, CellData& data) {
  results::MeanDuration delays;
  results::MeanDuration waits;
  double preemptions = 0;
  double service = 0;  // GPU-seconds
  for (const results::JobResult* job : jobs) {
    service += job->attained_service;
    if (const std::optional<Duration> delay = results::QueueingDelay(*job)) {
      delays.Add(*delay);
    }
    if (const std::optional<Duration> wait = results::WaitingTime(*job)) {
      waits.Add(*wait);
    }
    preemptions += job->preemptions;
  }
  Set(data, "queueing_delay_mean", delays.seconds());
  Set(data, "waiting_time_mean", waits.seconds());
  Set(data, "preemptions", preemptions);
  if (!jobs.empty()) {
    Set(data, "gpu_hours_mean", service / kHour / static_cast<double>(jobs.size()));
  }
}

// Jobs of each window by their submission: all, and those that met their deadline.
void AddWindows(const results::RunResult& run, const Jobs& jobs, TimePoint start, CellData& data) {
  std::vector<double> submitted;
  std::vector<double> met;
  for (const results::JobResult* job : jobs) {
    const auto window = static_cast<std::size_t>(Seconds(job->spec->submit - start) / kWindow);
    if (window >= submitted.size()) {
      submitted.resize(window + 1);
      met.resize(window + 1);
    }
    submitted[window] += 1;
    met[window] += results::DeadlineMet(*job, run).value_or(false) ? 1 : 0;
  }
  // Thinned by nothing: beyond this a figure would show none of it.
  constexpr std::size_t kMostWindows = 2000;
  for (const auto& [name, counts] : {std::pair{"submitted", &submitted}, {"deadlines_met", &met}}) {
    DataCurve& curve = data.curves[name];
    for (std::size_t i = 0; i < std::min(counts->size(), kMostWindows); ++i) {
      curve.x.push_back(static_cast<double>(i) * kWindow / kHour);
      curve.y.push_back((*counts)[i]);
    }
  }
}

void AddTimeline(const results::RunResult& run, TimePoint start, CellData& data) {
  double gpus = 0;
  double pending = 0;
  for (std::size_t i = 1; i < run.timeline.size(); ++i) {
    const results::TimelineSample& sample = run.timeline[i - 1];
    const double seconds = Seconds(run.timeline[i].time - sample.time);
    gpus += seconds * static_cast<double>(sample.gpus_used);
    pending += seconds * static_cast<double>(sample.jobs_pending);
  }
  if (run.timeline.size() < 2) {
    return;
  }
  const double span = Seconds(run.timeline.back().time - run.timeline.front().time);
  Set(data, "gpus_used", gpus / span);
  Set(data, "jobs_pending", pending / span);
  DataCurve& used = data.curves["gpus_used"];
  DataCurve& waiting = data.curves["jobs_pending"];
  for (const results::TimelineSample& sample : results::ThinTimeline(run.timeline, kCurvePoints)) {
    const double hours = Seconds(sample.time - start) / kHour;
    used.x.push_back(hours);
    used.y.push_back(static_cast<double>(sample.gpus_used));
    waiting.x.push_back(hours);
    waiting.y.push_back(static_cast<double>(sample.jobs_pending));
  }
}

// A job holds so many GPUs more from then on.
struct CellChange {
  TimePoint time{};
  std::uint32_t job = 0;
  int gpus = 0;
};

std::vector<CellChange> ChangesOf(const results::Allocations& allocations) {
  std::vector<CellChange> changes;
  for (const results::Holding& holding : allocations.holdings) {
    const int gpus = std::popcount(holding.gpus);
    changes.push_back({.time = holding.start, .job = holding.job, .gpus = gpus});
    changes.push_back({.time = holding.end, .job = holding.job, .gpus = -gpus});
  }
  std::sort(changes.begin(), changes.end(), [](const CellChange& a, const CellChange& b) {
    return std::tie(a.time, a.job, a.gpus) < std::tie(b.time, b.job, b.gpus);
  });
  return changes;
}

// How many GPUs as fast as one alone the job is worth on so many.
double SpeedUp(const profile::ThroughputTable& profiles, const JobSpec& job, int gpus) {
  const int row = profiles.Find(job.model, job.batch_size);
  if (row < 0 || gpus <= 0) {
    return 0;
  }
  const profile::ThroughputRow& rates = profiles.rows()[static_cast<std::size_t>(row)];
  const double alone = rates.Rate(1);
  return alone > 0 ? rates.Rate(gpus) / alone : 0;
}

// Cluster efficiency: the sum of the running jobs' speed-ups over one GPU, divided by all GPUs
// (ElasticFlow, ASPLOS'23, figure 10, whose samples lie as far apart).
void AddEfficiency(const results::RunResult& run, const profile::ThroughputTable& profiles,
                   TimePoint start, CellData& data) {
  constexpr double kSpacing = 2400;
  const std::vector<CellChange> changes = ChangesOf(*run.allocations);
  if (changes.empty() || changes.front().time == changes.back().time) {
    return;
  }
  std::vector<int> held(run.jobs.size(), 0);
  DataCurve& curve = data.curves["cluster_efficiency"];
  const auto gpus = static_cast<double>(run.gpus);
  double sum = 0;
  double area = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const JobSpec& job = *run.jobs[changes[i].job].spec;
    int& now = held[changes[i].job];
    sum -= SpeedUp(profiles, job, now);
    now += changes[i].gpus;
    sum += SpeedUp(profiles, job, now);
    if (i + 1 < changes.size() && changes[i + 1].time == changes[i].time) {
      continue;
    }
    const double hours = Seconds(changes[i].time - start) / kHour;
    if (curve.x.empty() || hours - curve.x.back() >= kSpacing / kHour) {
      curve.x.push_back(hours);
      curve.y.push_back(sum / gpus);
    }
    if (i + 1 < changes.size()) {
      area += sum / gpus * Seconds(changes[i + 1].time - changes[i].time);
    }
  }
  Set(data, "cluster_efficiency", area / Seconds(changes.back().time - changes.front().time));
}

}  // namespace

std::optional<double> CellData::Number(std::string_view name) const {
  const auto found = numbers.find(name);
  return found == numbers.end() ? std::nullopt : std::optional(found->second);
}

const MetricName* FindMetric(std::string_view metric) {
  const auto* const found =
      std::find_if(kMetricNames.begin(), kMetricNames.end(),
                   [&](const MetricName& name) { return name.metric == metric; });
  return found == kMetricNames.end() ? nullptr : found;
}

bool IsDataCurve(std::string_view name) {
  return std::find(kCurves.begin(), kCurves.end(), name) != kCurves.end();
}

CellData DataOf(const results::RunResult& run, const world::TrackedJobs* tracked,
                const profile::ThroughputTable* profiles) {
  CellData data;
  const Jobs jobs = JobsOf(run, tracked);
  AddJcts(run, jobs, data);
  AddSpan(run, jobs, data);
  AddDeadlines(run, jobs, data);
  AddWaits(jobs, data);
  const TimePoint start = results::FirstSubmit(run).value_or(TimePoint{});
  AddWindows(run, jobs, start, data);
  AddTimeline(run, start, data);
  if (profiles != nullptr && run.allocations) {
    AddEfficiency(run, *profiles, start, data);
  }
  return data;
}

std::string WriteData(const CellData& data) {
  nlohmann::json json{{"numbers", data.numbers}, {"curves", nlohmann::json::object()}};
  for (const auto& [name, curve] : data.curves) {
    json["curves"][name] = {{"x", curve.x}, {"y", curve.y}};
  }
  return json.dump();
}

Result<CellData> ReadData(std::string_view text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  try {
    CellData data;
    json.at("numbers").get_to(data.numbers);
    for (const auto& [name, curve] : json.at("curves").items()) {
      DataCurve& read = data.curves[name];
      curve.at("x").get_to(read.x);
      curve.at("y").get_to(read.y);
    }
    return data;
  } catch (const nlohmann::json::exception& error) {
    return Failed(fmt::format("the data of a cell cannot be read back: {}", error.what()));
  }
}

}  // namespace trainyard::experiments
