// SPDX-License-Identifier: Apache-2.0
// What users state or update without effect on this cluster, as sentences for them.
#pragma once

#include <string>
#include <vector>

#include "live/live_state.h"
#include "profile/throughput_table.h"
#include "trainyard/live.pb.h"

namespace trainyard::live {

// Of a job that is submitted.
[[nodiscard]] std::vector<std::string> IgnoredOf(const v1::JobRequest& job, const LiveState& state);
// Of the new values of a job.
[[nodiscard]] std::vector<std::string> IgnoredOf(const v1::UpdateRequest& update,
                                                 const engine::Configuration& with);

}  // namespace trainyard::live
