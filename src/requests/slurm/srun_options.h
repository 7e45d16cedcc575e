// SPDX-License-Identifier: Apache-2.0
// The options of srun outside of a job, and of salloc (the manual pages of Slurm 22.05), and what
// becomes of them here. Those that say what the job is are sbatch's.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "requests/slurm/sbatch_options.h"

namespace trainyard::requests {

// What an option says something of.
enum class OptionPart : std::uint8_t {
  kJob,      // as of sbatch
  kStep,     // the tasks that srun starts
  kCommand,  // how the command itself goes about it
};

// In the order of their names. Where a letter is another option's of sbatch, that one has none.
[[nodiscard]] const std::vector<SbatchOption>& SrunOptions();
[[nodiscard]] const std::vector<SbatchOption>& SallocOptions();
// Of the options of that command. REQUIRES: it is one of them.
[[nodiscard]] OptionPart PartOfSrun(std::string_view name);
[[nodiscard]] OptionPart PartOfSalloc(std::string_view name);

}  // namespace trainyard::requests
