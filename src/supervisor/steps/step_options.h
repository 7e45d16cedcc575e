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
  int nodes = 1;
  std::vector<std::string> node_list{};  // of the job's nodes those that it must have
  std::vector<std::string> excluded{};
  int first_node = 0;   // where the choice of nodes begins, by place in the job
  bool cyclic = false;  // ranks go round the nodes; otherwise those of a node follow one another
  int cpus_per_task = 1;
  bool overcommits = false;  // tasks may be more than CPUs
  // At most one of the three is not 0. All 0: each task sees all GPUs of the job on its node.
  int gpus_per_task = 0;
  int gpus_per_node = 0;
  int gpus = 0;                  // of the step
  bool overlaps = false;         // it shares CPUs and GPUs with others
  std::string exported = "ALL";  // as --export has it
  bool label = false;            // each line begins with the rank
  bool kill_on_bad_exit = false;
  bool confirms_interrupt = false;  // the first Ctrl-C shows the tasks, and the next one ends them
  bool appends = false;             // to its files
  std::string output{};             // patterns of files; empty: those of srun itself
  std::string errors{};
  std::string input{};  // empty: to all tasks; "none"; the number of a task; a file
  std::string folder{};
  std::string name{};  // empty: that of the program
  std::vector<std::string> command{};
  // --multi-prog: what each task runs, by rank; `command` begins with the file that says so.
  std::vector<std::vector<std::string>> programs{};
  std::vector<std::string> notes{};  // to be said on stderr, a line each

  using Environment = std::function<std::string(const char* name)>;  // empty: it is not set
  // As srun of Slurm 22.05 has them. Errors: an option that there is not; more nodes than the job
  // has.
  [[nodiscard]] static Result<StepOptions> Read(const std::vector<std::string>& words,
                                                const Environment& environment);
};

}  // namespace trainyard::supervisor
