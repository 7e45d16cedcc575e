// SPDX-License-Identifier: Apache-2.0
// What a node starts for an attempt: the job's command, its launcher and its container made into
// the command of each process. Nothing here looks at the machine or runs anything.
#pragma once

#include <string>
#include <vector>

#include "supervisor/attempt_folder.h"
#include "supervisor/launch/script_word.h"
#include "trainyard/live.pb.h"

namespace trainyard::supervisor {

// How many processes the supervisor starts: the workers, one launcher that starts them all, or one
// that holds the node.
[[nodiscard]] int ProcessesOf(const v1::StartAttempt& start);

// The command of the process of that number, which gets `environment` (WorkerEnvironment).
// `program` is the executable with the hidden command `launch` (launch_steps.h).
[[nodiscard]] std::vector<std::string> LaunchCommand(const v1::StartAttempt& start, int local_rank,
                                                     const AttemptFolder& folder,
                                                     const std::string& program,
                                                     const std::vector<std::string>& environment);

// Open MPI's list of the attempt's nodes with the workers of each, as Muri's worker writes one. The
// first is this machine. The others are node1, node2 ... by their rank: mpirun hands these names to
// `launch rsh` only, so they need not be names of hosts, and several may be one machine.
[[nodiscard]] std::string Hostfile(const v1::StartAttempt& start);
inline constexpr const char* kHostfile = "hostfile";  // its name in the attempt's folder
inline constexpr const char* kHostPrefix = "node";

// Has podman send the signal to the command of that worker's container. Unlike one that `podman
// run` passes on, a signal sent so arrives from the first moment on in which the command runs.
// Fails where the command does not run yet. REQUIRES: the attempt has containers.
[[nodiscard]] std::vector<std::string> SignalCommand(const v1::StartAttempt& start, int local_rank,
                                                     const AttemptFolder& folder, int signal);

// Runs the session's command, or a shell, in that worker's container. What runs there, unlike
// podman itself, has SessionMark in its environment. REQUIRES: the attempt has containers.
[[nodiscard]] std::vector<std::string> ExecCommand(const v1::StartAttempt& start, int local_rank,
                                                   const AttemptFolder& folder,
                                                   const v1::AttachRequest& request);
[[nodiscard]] std::string SessionMark(const std::string& session);

// The file in the attempt's folder with the process that ends with that worker's container.
[[nodiscard]] std::string ContainerPidFile(int local_rank);

// Tells podman to take note that the container's command has ended, which it does not by itself
// where a session was open then. REQUIRES: the attempt has containers.
[[nodiscard]] std::vector<std::string> CleanUpCommand(const v1::StartAttempt& start, int local_rank,
                                                      const AttemptFolder& folder);

// Removes the containers of this node, dead or alive, and is content if there are none. Empty: the
// attempt has no containers.
[[nodiscard]] std::vector<std::string> RemovalCommand(const v1::StartAttempt& start,
                                                      const AttemptFolder& folder);

}  // namespace trainyard::supervisor
