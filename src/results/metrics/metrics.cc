// SPDX-License-Identifier: Apache-2.0
#include "results/metrics/metrics.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "base/check.h"

namespace trainyard::results {
namespace {

// Sums over the jobs of one run, in one pass.
class Tally {
 public:
  explicit Tally(const RunResult& run) : run_(run) {
    jcts_.reserve(run.jobs.size());
    if (!run.ends_only) {
      metrics_.preemptions = metrics_.migrations = metrics_.resizes = 0;
    }
  }

  void Add(const JobResult& job) {
    AddCounts(job);
    AddTimes(job);
    held_gpu_seconds_ += job.attained_service;
    useful_gpu_seconds_ += job.useful_service;
  }

  [[nodiscard]] Metrics Finish() {
    metrics_.admitted = metrics_.jobs - metrics_.rejected;
    metrics_.accepted = metrics_.deadlines_met;
    metrics_.declined = metrics_.deadlines_late + metrics_.rejected;
    if (metrics_.deadline_jobs > 0) {
      metrics_.deadline_ratio =
          static_cast<double>(metrics_.deadlines_met) / static_cast<double>(metrics_.deadline_jobs);
    }
    metrics_.jct_mean = jct_.seconds();
    metrics_.queueing_delay_mean = queueing_delay_.seconds();
    metrics_.waiting_time_mean = waiting_time_.seconds();
    if (slowdowns_ > 0) {
      metrics_.bounded_slowdown_mean = slowdown_sum_ / static_cast<double>(slowdowns_);
    }
    if (fairness_jobs_ > 0) {
      metrics_.fairness_mean = fairness_sum_ / static_cast<double>(fairness_jobs_);
    }
    FinishPercentiles();
    FinishMakespan();
    return metrics_;
  }

 private:
  void AddCounts(const JobResult& job) {
    ++metrics_.jobs;
    metrics_.completed += job.outcome == Outcome::kCompleted ? 1 : 0;
    metrics_.rejected += job.outcome == Outcome::kRejected ? 1 : 0;
    metrics_.unfinished += job.outcome == Outcome::kUnfinished ? 1 : 0;
    if (const std::optional<bool> met = DeadlineMet(job, run_)) {
      const bool rejected = job.outcome == Outcome::kRejected;
      ++metrics_.deadline_jobs;
      metrics_.deadlines_met += *met ? 1 : 0;
      metrics_.deadlines_late += !*met && !rejected ? 1 : 0;
      metrics_.deadlines_rejected += rejected ? 1 : 0;
    }
    if (!run_.ends_only) {
      *metrics_.preemptions += job.preemptions;
      *metrics_.migrations += job.migrations;
      *metrics_.resizes += job.resizes;
    }
  }

  void AddTimes(const JobResult& job) {
    first_submit_ = std::min(first_submit_, job.spec->submit);
    if (const std::optional<TimePoint> end = CountedEnd(job, run_)) {
      last_end_ = std::max(last_end_, *end);
      jct_.Add(*end - job.spec->submit);
      jcts_.push_back(Seconds(*end - job.spec->submit));
    }
    if (const std::optional<Duration> delay = QueueingDelay(job)) {
      queueing_delay_.Add(*delay);
    }
    if (const std::optional<Duration> waited = WaitingTime(job); waited && !run_.ends_only) {
      waiting_time_.Add(*waited);
    }
    if (const std::optional<double> slowdown = BoundedSlowdown(job, run_);
        slowdown && !run_.ends_only) {
      slowdown_sum_ += *slowdown;
      ++slowdowns_;
    }
    if (const std::optional<double> fairness = FinishTimeFairness(job, run_)) {
      fairness_sum_ += *fairness;
      ++fairness_jobs_;
      metrics_.fairness_max = std::max(metrics_.fairness_max.value_or(*fairness), *fairness);
    }
  }

  void FinishPercentiles() {
    if (jcts_.empty()) {
      return;
    }
    std::sort(jcts_.begin(), jcts_.end());
    metrics_.jct_p50 = Percentile(jcts_, 0.5);
    metrics_.jct_p90 = Percentile(jcts_, 0.9);
    metrics_.jct_p99 = Percentile(jcts_, 0.99);
  }

  void FinishMakespan() {
    if (jcts_.empty()) {
      return;
    }
    metrics_.makespan = Seconds(last_end_ - first_submit_);
    const double gpu_seconds = static_cast<double>(run_.gpus) * *metrics_.makespan;
    if (gpu_seconds > 0 && !run_.ends_only) {
      metrics_.gpu_utilization = held_gpu_seconds_ / gpu_seconds;
      metrics_.gpu_utilization_useful = useful_gpu_seconds_ / gpu_seconds;
    }
  }

  const RunResult& run_;
  Metrics metrics_;
  MeanDuration jct_;
  MeanDuration queueing_delay_;
  MeanDuration waiting_time_;
  double slowdown_sum_ = 0;
  std::int64_t slowdowns_ = 0;
  double fairness_sum_ = 0;
  std::int64_t fairness_jobs_ = 0;
  std::vector<double> jcts_;  // in seconds
  TimePoint first_submit_ = TimePoint::max();
  TimePoint last_end_ = TimePoint::min();
  double held_gpu_seconds_ = 0;
  double useful_gpu_seconds_ = 0;
};

// Of the jobs that share a name.
struct Sums {
  std::int64_t jobs = 0;
  double gpu_seconds = 0;
  MeanDuration jct;
};

}  // namespace

Metrics Measure(const RunResult& run) {
  Tally tally(run);
  for (const JobResult& job : run.jobs) {
    tally.Add(job);
  }
  return tally.Finish();
}

std::optional<TimePoint> CountedEnd(const JobResult& job, const RunResult& run) {
  if (job.outcome != Outcome::kCompleted) {
    return std::nullopt;
  }
  return run.uses_logged_end ? job.logged : job.end;
}

std::optional<Duration> Jct(const JobResult& job, const RunResult& run) {
  const std::optional<TimePoint> end = CountedEnd(job, run);
  return end ? std::optional(*end - job.spec->submit) : std::nullopt;
}

std::optional<Duration> QueueingDelay(const JobResult& job) {
  return job.start ? std::optional(*job.start - job.spec->submit) : std::nullopt;
}

std::optional<Duration> WaitingTime(const JobResult& job) {
  return job.outcome == Outcome::kRejected ? std::nullopt : std::optional(job.waited);
}

std::optional<double> BoundedSlowdown(const JobResult& job, const RunResult& run) {
  constexpr double kShortest = 10;  // seconds
  const std::optional<Duration> jct = Jct(job, run);
  if (!jct) {
    return std::nullopt;
  }
  const double held = Seconds(job.productive + job.overhead);
  return std::max(1.0, Seconds(*jct) / std::max(held, kShortest));
}

std::optional<double> FinishTimeFairness(const JobResult& job, const RunResult& run) {
  const std::optional<Duration> jct = Jct(job, run);
  if (!jct || !job.alone || *job.alone <= Duration{0}) {
    return std::nullopt;
  }
  return Seconds(*jct) / Seconds(*job.alone);
}

std::optional<TimePoint> DeadlineOf(const JobSpec& spec) {
  return spec.best_effort ? std::nullopt : spec.deadline;
}

std::optional<bool> DeadlineMet(const JobResult& job, const RunResult& run) {
  const std::optional<TimePoint> deadline = DeadlineOf(*job.spec);
  if (!deadline) {
    return std::nullopt;
  }
  const std::optional<TimePoint> end =
      run.exact_deadlines && job.outcome == Outcome::kCompleted ? job.end : CountedEnd(job, run);
  return end && *end <= *deadline;
}

std::optional<TimePoint> FirstSubmit(const RunResult& run) {
  const auto earlier = [](const JobResult& a, const JobResult& b) {
    return a.spec->submit < b.spec->submit;
  };
  const auto first = std::min_element(run.jobs.begin(), run.jobs.end(), earlier);
  return first == run.jobs.end() ? std::nullopt : std::optional(first->spec->submit);
}

std::optional<double> JobsPerSecond(const RunResult& run) {
  if (run.wall_seconds <= 0) {
    return std::nullopt;
  }
  return static_cast<double>(run.jobs.size()) / run.wall_seconds;
}

double Percentile(std::span<const double> sorted, double fraction) {
  CHECK(!sorted.empty());
  CHECK(fraction >= 0 && fraction <= 1);
  const double place = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - std::floor(place));
}

std::optional<GpuTime> GpuTimeOf(const RunResult& run) {
  const std::optional<double> makespan = Measure(run).makespan;
  if (!makespan || run.ends_only) {
    return std::nullopt;
  }
  double held = 0;
  GpuTime time;
  for (const JobResult& job : run.jobs) {
    held += job.attained_service;
    time.useful += job.useful_service;
  }
  time.overhead = std::max(held - time.useful, 0.0);
  time.idle = std::max(static_cast<double>(run.gpus) * *makespan - held, 0.0);
  return time;
}

std::vector<Share> SharesBy(std::string JobSpec::*name, const RunResult& run) {
  std::map<std::string, Sums> sums;
  for (const JobResult& job : run.jobs) {
    Sums& own = sums[job.spec->*name];
    ++own.jobs;
    own.gpu_seconds += job.attained_service;
    if (const std::optional<Duration> jct = Jct(job, run)) {
      own.jct.Add(*jct);
    }
  }
  if (sums.size() == 1 && sums.begin()->first.empty()) {
    return {};
  }
  std::vector<Share> shares;
  shares.reserve(sums.size());
  for (const auto& [owner, own] : sums) {
    shares.push_back({.name = owner,
                      .jobs = own.jobs,
                      .gpu_seconds = own.gpu_seconds,
                      .jct_mean = own.jct.seconds()});
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const Share& a, const Share& b) { return a.gpu_seconds > b.gpu_seconds; });
  return shares;
}

}  // namespace trainyard::results
