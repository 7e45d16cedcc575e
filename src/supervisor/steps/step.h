// SPDX-License-Identifier: Apache-2.0
// A step: the tasks of a command on nodes of its job, as srun runs them. Each node has a process
// that starts its tasks (step_tasks.h); that of the script's node is a child of srun, those of the
// others are asked for at the attempt's desk (launch/node_desk.h), and call srun.
#pragma once

#include "supervisor/steps/step_options.h"

namespace trainyard::supervisor {

// Starts the tasks, waits for their end, and hands input, output and signals on, as `srun` does.
// The exit status is the highest of theirs, 128 + the number of a signal that has ended one, and 2
// where the program is not there.
[[nodiscard]] int RunStep(const StepOptions& options);

}  // namespace trainyard::supervisor
