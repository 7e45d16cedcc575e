// SPDX-License-Identifier: Apache-2.0
// Scripts with #SBATCH lines, as users of Slurm have them.
#pragma once

#include <string>
#include <vector>

#include "trainyard/live.pb.h"
#include "trainyard/status.h"

namespace trainyard::cli {

// Whether the file can be read and begins with "#!".
[[nodiscard]] bool IsScript(const std::string& path);

// Sets what the lines at the head of the script say, and the command: its interpreter, the script
// where it lies, and the arguments. It runs once on each node unless the lines ask for as many
// tasks as GPUs. Errors, as "file:line: ...": an option that does not mean anything here, or a
// value that it does not take.
[[nodiscard]] Status ReadBatchScript(const std::string& path,
                                     const std::vector<std::string>& arguments,
                                     v1::JobRequest& job);

}  // namespace trainyard::cli
