// SPDX-License-Identifier: Apache-2.0
// The tasks of a step on one node: a process that starts them as srun tells it, hands input, output
// and signals on, and ends all of them, with what they have started, when srun is gone.
#pragma once

#include <functional>
#include <string>

#include "supervisor/steps/step_channel.h"

namespace trainyard::supervisor {

// Becomes that process; ends with it. `environment`: of this process' node, from which the tasks
// have what differs between nodes. REQUIRES: it has one thread and no children, and leads no tasks.
[[noreturn]] void BecomeStepTasks(StepChannel channel, const v1::StepHello& hello);

// What a step on another node is asked for by: "step PORT NUMBER".
struct StepCall {
  int port = 0;
  int step = 0;
};
[[nodiscard]] std::string TextOf(const StepCall& call);

// Starts such a process for the command, as a child that dies with this one. -1: it is none, or
// there is no process.
[[nodiscard]] pid_t StartCalledStep(const v1::StartAttempt& start, const std::string& command);

}  // namespace trainyard::supervisor
