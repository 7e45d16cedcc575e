// SPDX-License-Identifier: Apache-2.0
// The process that stands by one attempt on one node. It outlives agent and controller; its workers
// do not outlive it.
#pragma once

#include <string>

namespace trainyard::supervisor {

// The main of the hidden command `trainyard supervise FOLDER`. Returns in the process that called
// it as soon as the supervisor holds the folder's lock and can be connected to, or has failed
// (status 1; the reason is in supervisor.log); in the supervisor itself when no process of the
// attempt is left and its report is on disk. REQUIRES: this process has one thread.
// `launch`: the digest (launch/launch_digest.h) of what alone it may run; empty: anything. `key`:
// the file with the public key of the controller without whose word nothing is attached; empty:
// none is asked for.
[[nodiscard]] int RunSupervisor(const std::string& attempt_folder, const std::string& launch = {},
                                const std::string& key = {});

}  // namespace trainyard::supervisor
