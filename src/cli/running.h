// SPDX-License-Identifier: Apache-2.0
// What the commands that run many cells have in common.
#pragma once

#include <string>
#include <vector>

#include "trainyard/status.h"

namespace trainyard::cli {

// The first SIGINT or SIGTERM asks to stop, the second ends the program as usual.
void StopOnSignals();
[[nodiscard]] bool StopWanted();

// What {reference} stands for in experiments: TRAINYARD_REFERENCE, or ../shared.
[[nodiscard]] std::string DefaultReference();

[[nodiscard]] std::string ThisProgram();  // the path of this executable
// Names the build: the program and its plug-ins.
[[nodiscard]] Result<std::string> ProgramDigest(const std::vector<std::string>& plugins);
// The version, and which plug-ins: "0.1.0 with slack.so (1a2b3c4d5e6f)".
[[nodiscard]] Result<std::string> ProgramName(const std::vector<std::string>& plugins);

}  // namespace trainyard::cli
