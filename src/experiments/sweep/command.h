// SPDX-License-Identifier: Apache-2.0
// Runs another program to its end and takes its output.
#pragma once

#include <string>
#include <vector>

#include "trainyard/status.h"

namespace trainyard::experiments {

struct CommandOutput {
  int status = 0;      // its exit status; 128 + the signal that ended it
  std::string output;  // of standard output
  std::string errors;  // of standard error, without line ends after it
};

// `words`: the program, looked for in PATH, and its arguments; no shell comes between. Errors: it
// cannot be started.
[[nodiscard]] Result<CommandOutput> RunCommand(const std::vector<std::string>& words);

// A word as a POSIX shell takes it, whatever signs it has.
[[nodiscard]] std::string QuotedForShell(const std::string& word);

}  // namespace trainyard::experiments
