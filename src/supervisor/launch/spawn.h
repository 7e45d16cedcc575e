// SPDX-License-Identifier: Apache-2.0
// Programs that an agent starts beside its attempts' workers.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace trainyard::supervisor {

// In place of this process' own; -1: as they are.
struct SpawnFiles {
  int in = -1;
  int err = -1;
};

// Starts the command, looked for along this process' PATH, with no signal blocked or ignored. An
// error number or 0.
[[nodiscard]] int Spawn(const std::vector<std::string>& command, char* const* environment,
                        pid_t& pid, SpawnFiles files = {});

}  // namespace trainyard::supervisor
