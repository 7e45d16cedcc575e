// SPDX-License-Identifier: Apache-2.0
// Runs trials as processes of this machine, as the agent of a node runs attempts: the same
// environment, job protocol and supervisors (docs/job-protocol.md).
#pragma once

#include <memory>
#include <string>

#include "profiler/trial.h"

namespace trainyard::profiler {

struct ProcessRunnerOptions {
  std::string scratch;              // a folder of its own: logs, checkpoints
  std::string program;              // path of the executable that has the command `supervise`
  bool (*stop_wanted)() = nullptr;  // whether the user wants no more; null: never
  // Where the processes of a script meet.
  std::string master_address = "127.0.0.1";
  int master_port = 0;  // 0: another one for each run
};

// Iterations are those of which the script tells by the job protocol; one that does not speak it
// may write PERF_NAME.txt into its folder, whose first line is the mean seconds of an iteration
// (Synergy, OSDI'22; reference 10.5), NAME being that of `--job-name` ("{name}").
[[nodiscard]] std::unique_ptr<TrialRunner> MakeProcessRunner(ProcessRunnerOptions options);

// What `--job-name` is in a trial.
inline constexpr const char* kTrialJobName = "trainyard-profile";

}  // namespace trainyard::profiler
