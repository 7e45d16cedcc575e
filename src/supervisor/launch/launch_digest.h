// SPDX-License-Identifier: Apache-2.0
// What a credential says of the program that may run (launcher/credential.h): controller and
// supervisor work it out, so that no agent between them can run another.
#pragma once

#include <string>

#include "trainyard/live.pb.h"

namespace trainyard::supervisor {

// SHA-256 in hex of all that decides what runs: command, working directory, environment, launcher,
// virtual environment and container.
[[nodiscard]] std::string LaunchDigest(const v1::LaunchSpec& launch);

}  // namespace trainyard::supervisor
