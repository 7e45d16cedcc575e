// SPDX-License-Identifier: Apache-2.0
// How fast jobs run that state their stage times: alone, interleaved (Muri) and collocated
// (AntMan).
#pragma once

#include <memory>

#include "profile/interleave.h"
#include "trainyard/snapshot.h"

namespace trainyard {

[[nodiscard]] inline bool StatesStages(const JobSpec& job) {
  return job.traits != nullptr && job.traits->stages.has_value();
}

// Seconds of an iteration of a job that yields to `other` wherever both want the same resource,
// while `other` does an iteration in `other_seconds` as if it were alone (reference 7). REQUIRES:
// both have three stages.
[[nodiscard]] double SecondsYielding(const StageTimes& job, const StageTimes& other,
                                     double other_seconds);

// Work is iterations. A job alone does one in its iteration time; a group in its group time; of
// collocated jobs those of priority 0 run as if alone and the others yield to them. Jobs that share
// GPUs on equal terms take twice as long. REQUIRES: every job states its stages.
[[nodiscard]] std::unique_ptr<ExecutionModel> MakeStageModel(const GroupTimes::Rules& rules);

}  // namespace trainyard
