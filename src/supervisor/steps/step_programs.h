// SPDX-License-Identifier: Apache-2.0
// The file of srun --multi-prog: which task runs which program (man srun, MULTIPLE PROGRAM
// CONFIGURATION).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trainyard/live.pb.h"
#include "trainyard/status.h"

namespace trainyard::supervisor {

// The command of each task, by rank. `name` is for messages; `more` follows the arguments of each.
// Errors: "silly.conf:2: what is wrong".
[[nodiscard]] Result<std::vector<std::vector<std::string>>> ReadStepPrograms(
    std::string_view text, const std::string& name, int tasks,
    const std::vector<std::string>& more);

// Tells the tasks of a node which of them run which; nothing where `programs` is empty.
void PutStepPrograms(const std::vector<std::vector<std::string>>& programs, v1::StepStart& start);

}  // namespace trainyard::supervisor
