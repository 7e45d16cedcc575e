// SPDX-License-Identifier: Apache-2.0
// The steps of a job in the words of Slurm: its script, and what that has started by srun.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trainyard/live.pb.h"

namespace trainyard::cli {

struct SlurmStep {
  std::string id{};  // "batch", "0"
  std::string name{};
  std::string state{};      // "RUNNING", "COMPLETED"
  std::string exit_code{};  // "7:0": exit code and signal
  double started = 0;
  std::optional<double> ended{};
  int tasks = 1;
  int cpus = 1;
  int nodes = 1;
  std::string node_list{};

  [[nodiscard]] bool is_batch() const { return id == "batch"; }
  // In seconds, up to `now`.
  [[nodiscard]] double ElapsedAt(double now) const { return ended.value_or(now) - started; }
};

// The script first, then those that it has started, by number. None: the job is no script that
// starts steps, or has not started.
[[nodiscard]] std::vector<SlurmStep> SlurmStepsOf(const v1::JobStatus& job);

// The signal that an exit code stands for, 9 of 137; 0: it stands for none.
[[nodiscard]] int SignalOfExit(int code);
// "0:9" of 137, "7:0" of 7.
[[nodiscard]] std::string SlurmExitText(int code);

}  // namespace trainyard::cli
