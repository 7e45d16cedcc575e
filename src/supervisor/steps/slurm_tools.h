// SPDX-License-Identifier: Apache-2.0
// The commands of Slurm that scripts call: the program itself, by these names, in the folder of the
// attempt, which is on the path of each batch script.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "trainyard/status.h"

namespace trainyard::supervisor {

inline constexpr std::array<std::string_view, 8> kSlurmTools{
    "sacct", "sbatch", "scancel", "scontrol", "sinfo", "squeue", "srun", "sstat"};
inline constexpr std::string_view kStepTool = "srun";
// For tools: where the attempt's folder is.
inline constexpr const char* kStepFolderVariable = "TRAINYARD_STEPS";
// What bash reads first, and what it would have read.
inline constexpr const char* kBashFile = "bash-env";
inline constexpr const char* kFormerBashVariable = "TRAINYARD_BASH_ENV";

// Puts the tools, which are `program`, into the attempt's folder. Error: they cannot be made.
[[nodiscard]] Status MakeSlurmTools(const std::string& folder, const std::string& program);

// What the program does by the name of srun: its exit status. `words`: what follows the name.
int RunSrun(const std::vector<std::string>& words);

// scontrol show hostnames|hostlist [LIST]: what it prints. Of other words nothing.
struct ToolAnswer {
  int status = 0;
  std::string out{};
  std::string errors{};
};
// `of_job`: the list of the job's nodes; empty: it is not known.
[[nodiscard]] ToolAnswer Scontrol(const std::vector<std::string>& words, std::string_view of_job);

}  // namespace trainyard::supervisor
