// SPDX-License-Identifier: Apache-2.0
// What users of Slurm type, and what is typed here instead: docs/from-slurm.md in the program.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::requests {

inline constexpr const char* kSlurmPage = "docs/from-slurm.md";

// What a command line of Slurm is here: "trainyard status --all" for {"sacct"}, and by the next
// word for {"scontrol", "hold"}. Empty: it is no command of Slurm.
[[nodiscard]] std::string InsteadOfCommand(std::span<const std::string_view> words);

// What an option of sbatch ("--partition=long", "-p", "-N2") is for `submit` and `run`, as a
// sentence: "it is --queue here". Empty: sbatch has no such option.
[[nodiscard]] std::string InsteadOfOption(std::string_view word);

// Likewise of an option with which squeue and scancel choose jobs ("-u", "--states=PD").
[[nodiscard]] std::string InsteadOfSelection(std::string_view word);

// What a job's state of Slurm ("pending", "PD") is called here. Empty: Slurm has no such state.
[[nodiscard]] std::string InsteadOfState(std::string_view word);

// Commands of Slurm that the script calls, with the line of their first call: "srun (line 12)".
struct SlurmCall {
  std::string command;
  int line = 0;
};
[[nodiscard]] std::vector<SlurmCall> SlurmCallsIn(std::string_view script);

}  // namespace trainyard::requests
