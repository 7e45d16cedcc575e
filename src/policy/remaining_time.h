// SPDX-License-Identifier: Apache-2.0
// How long a job still takes, at full speed or at the speed that it ran with last.
#pragma once

#include "trainyard/options.h"
#include "trainyard/snapshot.h"

namespace trainyard {

inline constexpr OptionSpec kSpeedOption{
    "speed", OptionSpec::Kind::kChoice, "full",
    "remaining time at full speed, or as fast as with the grant at hand (last)", "full|last"};

// Seconds on the requested GPUs. Jobs without GPUs are taken at full speed.
// REQUIRES: Needs::work_left.
[[nodiscard]] inline double RemainingSeconds(const JobView& job, bool at_last_speed) {
  const bool known = job.last_rate > 0 && (job.grant != nullptr || !job.started);
  if (at_last_speed && known && job.work_left) {
    return *job.work_left / job.last_rate;
  }
  return Seconds(job.time_left.value_or(Duration::max()));
}

}  // namespace trainyard
