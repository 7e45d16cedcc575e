// SPDX-License-Identifier: Apache-2.0
// Names of the files of a step's tasks.
#pragma once

#include <string>

namespace trainyard::supervisor {

// What placeholders of a pattern stand for: "step-%j-%t.txt". `number`: of the step.
struct StepNames {
  std::string job{};
  std::string array{};
  std::string index{};
  std::string name{};
  std::string user{};
  std::string node{};
  int number = 0;
  int task = 0;
  int node_index = 0;
};
[[nodiscard]] std::string StepFile(const std::string& pattern, const StepNames& names);

// Whether tasks, or nodes, have files of their own by it: such files each task opens for itself,
// others srun.
[[nodiscard]] bool IsOfEachTask(const std::string& pattern);

}  // namespace trainyard::supervisor
