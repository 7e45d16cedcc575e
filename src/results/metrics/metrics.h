// SPDX-License-Identifier: Apache-2.0
// What is measured of a run. docs/metrics.md says the same in words and formulas; the columns of
// jobs.csv are the functions for one job, the keys of summary.json are `Metrics`.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "results/metrics/run_result.h"
#include "trainyard/job.h"
#include "trainyard/time.h"

namespace trainyard::results {

// Times in seconds. None where the quantity does not apply, for example a mean over no jobs.
struct Metrics {
  std::int64_t jobs = 0;
  std::int64_t completed = 0;
  std::int64_t rejected = 0;
  std::int64_t unfinished = 0;
  std::int64_t admitted = 0;  // not rejected
  // deadline_jobs = deadlines_met + deadlines_late + deadlines_rejected
  std::int64_t deadline_jobs = 0;
  std::int64_t deadlines_met = 0;
  std::int64_t deadlines_late = 0;  // missed by a job that was not rejected
  std::int64_t deadlines_rejected = 0;
  std::optional<double> deadline_ratio;
  // The two counts of ElasticFlow's results.
  std::int64_t accepted = 0;  // deadlines met
  std::int64_t declined = 0;  // late, or rejected with or without a deadline
  std::optional<double> jct_mean;
  std::optional<double> jct_p50;
  std::optional<double> jct_p90;
  std::optional<double> jct_p99;
  std::optional<double> makespan;
  std::optional<double> queueing_delay_mean;    // of the jobs that started
  std::optional<double> waiting_time_mean;      // of the jobs that were not rejected; if recorded
  std::optional<double> bounded_slowdown_mean;  // of completed jobs; if recorded
  std::optional<double> fairness_mean;          // of finish-time fairness, over completed jobs
  std::optional<double> fairness_max;
  std::optional<double> gpu_utilization;
  std::optional<double> gpu_utilization_useful;
  // Sums over the jobs; none where they were not recorded.
  std::optional<std::int64_t> preemptions;
  std::optional<std::int64_t> migrations;
  std::optional<std::int64_t> resizes;
};

// O(n log n) in the jobs. The same result for the same run on every machine.
[[nodiscard]] Metrics Measure(const RunResult& run);

// The end that feeds JCT, makespan and deadlines; none if the job did not complete.
[[nodiscard]] std::optional<TimePoint> CountedEnd(const JobResult& job, const RunResult& run);

// Counted end - submit; none without an end.
[[nodiscard]] std::optional<Duration> Jct(const JobResult& job, const RunResult& run);

// First start - submit; none if the job never started. Negative where a trace hands jobs over
// before their submission time.
[[nodiscard]] std::optional<Duration> QueueingDelay(const JobResult& job);

// All time without GPUs before the end, or before the stop of the run; none for a rejected job,
// which does not wait for GPUs.
[[nodiscard]] std::optional<Duration> WaitingTime(const JobResult& job);

// max(1, JCT / max(time with GPUs, 10 s)), of D. Feitelson and L. Rudolph, JSSPP'98: how much
// longer the job has taken than it had to, where very short ones do not count for more. None
// without an end.
[[nodiscard]] std::optional<double> BoundedSlowdown(const JobResult& job, const RunResult& run);

// Finish-time fairness, rho: JCT over the time that the job takes alone. Greater is less fair;
// below 1 it was given more than it asked for. None without an end, or if it does not run alone.
[[nodiscard]] std::optional<double> FinishTimeFairness(const JobResult& job, const RunResult& run);

// The deadline that the job is held to: none for best-effort jobs.
[[nodiscard]] std::optional<TimePoint> DeadlineOf(const JobSpec& spec);

// Whether the counted end (RunResult::exact_deadlines: the exact one) is not after the deadline.
// Without an end, whatever the reason, it is missed; none if the job is held to no deadline.
[[nodiscard]] std::optional<bool> DeadlineMet(const JobResult& job, const RunResult& run);

// None without jobs. O(jobs).
[[nodiscard]] std::optional<TimePoint> FirstSubmit(const RunResult& run);

// Jobs of the trace per second of wall time; none if the run took no measurable time.
[[nodiscard]] std::optional<double> JobsPerSecond(const RunResult& run);

// The value at `fraction` of the way from the first to the last, linear between two neighbours
// (type 7 of Hyndman and Fan; the default of NumPy).
// REQUIRES: `sorted` is ascending and not empty; 0 <= fraction <= 1
[[nodiscard]] double Percentile(std::span<const double> sorted, double fraction);

// The mean of durations, in seconds.
class MeanDuration {
 public:
  void Add(Duration value) {
    sum_us_ += Micros(value);
    ++count_;
  }
  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] std::optional<double> seconds() const {
    return count_ == 0 ? std::nullopt : std::optional(sum_us_ / static_cast<double>(count_) / 1e6);
  }

 private:
  double sum_us_ = 0;  // exact up to 2^53, about 285 years
  std::int64_t count_ = 0;
};

// useful + overhead + idle = total, the GPUs of the cluster times the makespan. Where more was held
// than that (runs that were stopped early), idle is 0 and the total is what was held.
struct GpuTime {
  double useful = 0;    // jobs advanced
  double overhead = 0;  // held without advancing: restarts, rounds that are paid to their end
  double idle = 0;
};
// None if no job completed, or where it was not recorded (RunResult::ends_only). O(jobs).
[[nodiscard]] std::optional<GpuTime> GpuTimeOf(const RunResult& run);

struct Share {
  std::string name;  // empty: jobs that state none
  std::int64_t jobs = 0;
  double gpu_seconds = 0;          // held
  std::optional<double> jct_mean;  // of completed jobs, in seconds
};
// By one of the names that jobs have, such as &JobSpec::user; the greatest first, then by name.
// Empty if no job states one.
[[nodiscard]] std::vector<Share> SharesBy(std::string JobSpec::*name, const RunResult& run);

}  // namespace trainyard::results
