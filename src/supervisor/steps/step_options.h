// SPDX-License-Identifier: Apache-2.0
// What `srun` in a batch script is asked for, as its options and the job's variables say.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trainyard/status.h"

namespace trainyard::supervisor {

// Of the environment that this process has; empty: it is not set.
[[nodiscard]] std::string JobVariable(const char* name);

struct StepOptions {
  int tasks = 1;
  int cpus_per_task = 1;
  int gpus_per_task = 0;  // 0: each task sees all GPUs of the step
  int gpus = 0;           // of the step; 0: all of the job here, if `gpus_per_task` is 0, too
  int cpus_here = 0;      // that steps side by side share out; 0: any number
  bool overlaps = false;  // it shares CPUs and GPUs with others
  std::string exported = "ALL";  // as --export has it
  bool label = false;            // each line begins with the rank
  bool kill_on_bad_exit = false;
  std::string output{};  // patterns of files; empty: those of srun itself
  std::string errors{};
  std::string input{};  // empty: to all tasks; "none"; the number of a task; a file
  std::string folder{};
  std::vector<std::string> command{};
  std::vector<std::string> notes{};  // to be said on stderr, a line each

  using Environment = std::function<std::string(const char* name)>;  // empty: it is not set
  // As srun of Slurm 22.05 has them. Errors: an option that there is not; more than the job has; a
  // step on several nodes, which is not here yet.
  [[nodiscard]] static Result<StepOptions> Read(const std::vector<std::string>& words,
                                                const Environment& environment);
};

}  // namespace trainyard::supervisor
