// SPDX-License-Identifier: Apache-2.0
// The sub-commands. Each adds itself to the program; its callback leaves the outcome in `status`.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <string>

#include "trainyard/status.h"

namespace trainyard {

// What a command leaves for main to turn into an exit status.
struct CommandOutcome {
  Status status;
  std::string command_line;  // as given
};

void AddSimulate(CLI::App& app, CommandOutcome& outcome);
void AddCompare(CLI::App& app, CommandOutcome& outcome);
void AddTrace(CLI::App& app, CommandOutcome& outcome);
// policies, placements, admissions, presets
void AddCatalogs(CLI::App& app, CommandOutcome& outcome);

}  // namespace trainyard
