// SPDX-License-Identifier: Apache-2.0
// The attempts of this machine: each with a supervisor process of its own that outlives the agent,
// or played in memory if it is emulated.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "supervisor/processes.h"

namespace trainyard::supervisor {

inline constexpr std::uint64_t kDefaultLogLimit = std::uint64_t{1} << 30;

struct LocalProcessesOptions {
  std::string state_folder;  // one agent's alone; made if need be
  std::string program;       // path of the executable that has the command `supervise`
  // Bytes of the disk that the logs of one job may take; 0: any number.
  std::uint64_t log_limit = kDefaultLogLimit;
  // Why a GPU of this node cannot be relied on; empty: it can. Asked where a worker has failed. The
  // function may be empty: the NVIDIA driver has not counted the GPUs, and knows nothing of them.
  std::function<std::string(int gpu)> gpu_fault{};
  // A supervisor that does not end its attempt even so long after the grace period is killed.
  Duration patience = std::chrono::seconds(30);
  // The path of trainyard-launcher, which starts each job as its own user. Empty: all run as this
  // process' user.
  std::string launcher{};
};

// `on_reports` is called from a thread of its own whenever there are new reports to take; it may
// call the object. The object's functions are thread-safe.
[[nodiscard]] std::unique_ptr<Processes> MakeLocalProcesses(LocalProcessesOptions options,
                                                            std::function<void()> on_reports);

}  // namespace trainyard::supervisor
