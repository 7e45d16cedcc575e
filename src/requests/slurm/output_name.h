// SPDX-License-Identifier: Apache-2.0
// The names of files that a job writes to, with the placeholders of sbatch.
#pragma once

#include <string>
#include <string_view>

#include "trainyard/status.h"

namespace trainyard::requests {

// The pattern as a word of the shell, to be expanded where the job runs:
//   %j and %J job, %A the array's job, %a index in the array (4294967294 outside of one, as
//   in Slurm), %b the index modulo 10, %x name of the job, %u user, %N short host name, %n number
//   of the node in the job, %t rank of the worker, %s "batch", %%.
// A number before the letter pads numbers with zeros ("%4a"), to 10 places at most. The error says
// which placeholder there is not.
[[nodiscard]] Result<std::string> OutputWord(std::string_view pattern);

// Whether jobs, and tasks of one array, write to files of their own.
[[nodiscard]] bool DiffersByTask(std::string_view pattern);

}  // namespace trainyard::requests
