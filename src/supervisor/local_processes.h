// SPDX-License-Identifier: Apache-2.0
// The attempts of this machine: each with a supervisor process of its own that outlives the agent,
// or played in memory if it is emulated.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "supervisor/processes.h"

namespace trainyard {

struct LocalProcessesOptions {
  std::string state_folder;  // one agent's alone; made if need be
  std::string program;       // path of the executable that has the command `supervise`
  // A supervisor that does not end its attempt even so long after the grace period is killed.
  Duration patience = std::chrono::seconds(30);
};

// `on_reports` is called from a thread of its own whenever there are new reports to take; it may
// call the object. The object's functions are thread-safe.
[[nodiscard]] std::unique_ptr<Processes> MakeLocalProcesses(LocalProcessesOptions options,
                                                            std::function<void()> on_reports);

}  // namespace trainyard
