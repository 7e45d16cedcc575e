// SPDX-License-Identifier: Apache-2.0
// The environment of an attempt's workers: what torchrun and Blox set, and what Trainyard adds.
// docs/live.md lists the variables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "supervisor/attempt_folder.h"
#include "trainyard/live.pb.h"

namespace trainyard::supervisor {

// Whether Trainyard sets the variable itself, so that a job's own value could not count.
[[nodiscard]] bool IsReservedVariable(std::string_view name);

// Whether the variable is among the few that are taken over from the agent's environment.
[[nodiscard]] bool IsTakenOver(std::string_view name);

// Where the job's socket is in a container.
inline constexpr const char* kSocketInContainer = "/run/trainyard/job.sock";

// How many workers the attempt has on this node.
[[nodiscard]] int WorkersOf(const v1::StartAttempt& start);
// Whether the attempt only holds the node for the worker on another one (LaunchSpec::ONCE).
[[nodiscard]] inline bool OnlyHolds(const v1::StartAttempt& start) {
  return start.launch().workers() == v1::LaunchSpec::ONCE && start.node_rank() > 0;
}
// Whether a script runs on its first node that may start steps on all of them.
[[nodiscard]] inline bool HasSteps(const v1::StartAttempt& start) {
  return start.launch().workers() == v1::LaunchSpec::ONCE &&
         !start.launch().batch().script().empty() && !start.launch().has_container();
}

// "NAME=value" for each variable: the few that are taken over from the agent, what the launcher
// likes to have, then the job's own, then Trainyard's; of one name the last counts. In a container
// the job's own for what is taken over is left out: podman needs the agent's (LaunchCommand).
[[nodiscard]] std::vector<std::string> WorkerEnvironment(const v1::StartAttempt& start,
                                                         int local_rank,
                                                         const AttemptFolder& folder,
                                                         const std::string& socket);

// The same for a process of ProcessesOf(): mpirun and its daemons keep their files in the attempt's
// folder. RestoreTemporaryFolder() takes that back in a process that was started by them.
[[nodiscard]] std::vector<std::string> ProcessEnvironment(const v1::StartAttempt& start,
                                                          int local_rank,
                                                          const AttemptFolder& folder,
                                                          const std::string& socket);
void RestoreTemporaryFolder();

}  // namespace trainyard::supervisor
