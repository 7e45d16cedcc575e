// SPDX-License-Identifier: Apache-2.0
// Tasks of a job that is to be submitted: what `tasks`, `tasks_per_node` and amounts for each task
// ("4/task") come to (docs/requests.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trainyard/live.pb.h"
#include "trainyard/status.h"

namespace trainyard::requests {

// Of the keys that one file states, or, where it has no name, the options of a command. Error: two
// of them say how many workers the job has.
[[nodiscard]] Status CheckTaskKeys(const std::vector<std::string_view>& keys,
                                   const std::string& file = {});

// Turns what the request says of tasks into what the controller knows: workers and amounts of each
// node. To be called once all else is said. Errors: those of model::SettleTasks; tasks of a script
// with #SBATCH lines; amounts for each task of a job that has one worker for all its nodes.
[[nodiscard]] Status SettleTasks(v1::JobRequest& job);

}  // namespace trainyard::requests
