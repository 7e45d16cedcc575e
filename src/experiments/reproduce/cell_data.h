// SPDX-License-Identifier: Apache-2.0
// What figures show of a run: numbers, and curves thinned to what can be seen.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profile/throughput_table.h"
#include "results/metrics/run_result.h"
#include "trainyard/status.h"
#include "world/simulated_world.h"

namespace trainyard::experiments {

struct DataCurve {
  std::vector<double> x;  // ascending; times are hours since the first submit, or seconds of JCT
  std::vector<double> y;
};

// Over the tracked jobs where only some are tracked. What does not apply is left out. Times are
// seconds; jct_mean_hours and makespan_hours are the same in hours.
//   jct_mean, jct_p99 and jct_p99.9 (linear), jct_p99_rank (value number trunc(0.99 n), from 0),
//   jct_p99_ceil (number ceil(0.99 n), from 1): the percentiles of the programs
//   makespan (last end - first submit), last_end (from time 0)
//   deadlines_met, deadline_ratio (met / (met + late + rejected))
//   best_effort_jct_mean, queueing_delay_mean, waiting_time_mean, preemptions
//   gpus_used, jobs_pending (means over time, of all jobs)
//   cluster_efficiency (the same; with throughput profiles and recorded allocations)
// Curves: jct (a share y of the jobs has at most x seconds), gpus_used, jobs_pending,
// cluster_efficiency (steps), submitted and deadlines_met (jobs of each ten minutes).
struct CellData {
  std::map<std::string, double, std::less<>> numbers;
  std::map<std::string, DataCurve, std::less<>> curves;

  [[nodiscard]] std::optional<double> Number(std::string_view name) const;
};

// A number of CellData as tables call it.
struct MetricName {
  std::string_view metric;  // the name in CellData::numbers
  std::string_view name;
  std::string_view unit;
  int digits = 0;  // after the point, where no published value says how many
};
// Null: there is no such number.
[[nodiscard]] const MetricName* FindMetric(std::string_view metric);
[[nodiscard]] bool IsDataCurve(std::string_view name);

// `tracked`: null: all jobs; `profiles`: null: no cluster efficiency.
[[nodiscard]] CellData DataOf(const results::RunResult& run, const world::TrackedJobs* tracked,
                              const profile::ThroughputTable* profiles);

// One line of JSON, and back. Errors: it is none.
[[nodiscard]] std::string WriteData(const CellData& data);
[[nodiscard]] Result<CellData> ReadData(std::string_view json);

}  // namespace trainyard::experiments
