// SPDX-License-Identifier: Apache-2.0
// How long a job still takes, at full speed or at the speed that it ran with last.
#pragma once

#include "trainyard/options.h"
#include "trainyard/snapshot.h"

namespace trainyard::policies {

inline constexpr OptionSpec kSpeedOption{
    "speed", OptionSpec::Kind::kChoice, "full",
    "remaining time at full speed, or as fast as with the grant at hand (last)", "full|last"};

// Time left by which jobs are compared: a waiting job's includes what its start costs, and from a
// running one's is taken what its restart would cost. So that a job is displaced only if what is
// gained pays for both. REQUIRES: Requires::work_left.
[[nodiscard]] inline Duration ComparedTimeLeft(const JobView& job) {
  return job.time_left.value_or(Duration::max()) -
         (job.grant != nullptr ? job.start_cost : Duration{0});
}

// The same in seconds. Jobs without GPUs are taken at full speed.
[[nodiscard]] inline double RemainingSeconds(const JobView& job, bool at_last_speed) {
  const bool known = job.last_rate > 0 && (job.grant != nullptr || !job.started);
  if (at_last_speed && known && job.work_left) {
    const double costs = Seconds(job.start_cost);
    return *job.work_left / job.last_rate + (job.grant != nullptr ? -costs : costs);
  }
  return Seconds(ComparedTimeLeft(job));
}

}  // namespace trainyard::policies
