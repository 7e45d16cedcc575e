// SPDX-License-Identifier: Apache-2.0
// The tasks of a step on the node of the script.
#pragma once

#include <string>

#include "supervisor/steps/step_options.h"

namespace trainyard::supervisor {

// Starts the tasks, waits for their end, and hands signals on that come to this process alone: as
// `srun` does. The exit status is the highest of theirs, 128 + the number of a signal that has
// ended one, and 2 where the program is not there.
[[nodiscard]] int RunStep(const StepOptions& options);

// What a pattern of a task's file is: "step-%j-%t.txt". `number`: of the step.
struct StepNames {
  std::string job{};
  std::string array{};
  std::string index{};
  std::string name{};
  std::string user{};
  std::string node{};
  int number = 0;
  int task = 0;
};
[[nodiscard]] std::string StepFile(const std::string& pattern, const StepNames& names);

}  // namespace trainyard::supervisor
