// SPDX-License-Identifier: Apache-2.0
// trainyard controller pause, resume, close, open: what a running controller leaves for now.
#pragma once

#include <CLI/App.hpp>
#include <string>

#include "cli/commands.h"
#include "trainyard/live.pb.h"

namespace trainyard::cli {

// As commands below `controller`.
void AddSwitches(CLI::App& controller, Command& chosen);

// A line for each switch that is on: "decisions are paused by ... since ...: reason; 'trainyard
// controller resume' ends that". Empty: none is.
[[nodiscard]] std::string SwitchesText(const v1::Switches& switches);

}  // namespace trainyard::cli
