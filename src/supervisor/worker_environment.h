// SPDX-License-Identifier: Apache-2.0
// The environment of an attempt's workers: what torchrun and Blox set, and what Trainyard adds.
// docs/live.md lists the variables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "supervisor/attempt_folder.h"
#include "trainyard/live.pb.h"

namespace trainyard::supervisor {

// Whether Trainyard sets the variable itself, so that a job's own value could not count.
[[nodiscard]] bool IsReservedVariable(std::string_view name);

// How many workers the attempt has on this node.
[[nodiscard]] int WorkersOf(const v1::StartAttempt& start);

// "NAME=value" for each variable: the few that are taken over from the agent, then the job's own,
// then Trainyard's; of one name the last counts.
[[nodiscard]] std::vector<std::string> WorkerEnvironment(const v1::StartAttempt& start,
                                                         int local_rank,
                                                         const AttemptFolder& folder,
                                                         const std::string& socket);

}  // namespace trainyard::supervisor
