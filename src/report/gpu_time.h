// SPDX-License-Identifier: Apache-2.0
// Where the GPU time of a run went: work, overhead, idleness; users, queues, models. In
// GPU-seconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/run_result.h"

namespace trainyard {

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

}  // namespace trainyard
