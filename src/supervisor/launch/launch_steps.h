// SPDX-License-Identifier: Apache-2.0
// The hidden command `launch`: what mpirun and supervisors start between them and the workers. All
// of it runs within an attempt and finds that by its environment.
//
//   launch rsh HOST COMMAND...   for mpirun in place of ssh: has the command run on that node
//   launch daemon                on the other nodes: becomes the command that mpirun wants there
//   launch hold                  on the other nodes of a script: starts its steps there, until the
//                                supervisor asks it to leave and none is left
//   launch rank COMMAND...       becomes a worker, with the environment that others have
#pragma once

#include <span>
#include <string>

namespace trainyard::supervisor {

// The exit status. Comes back only from what does not become another program.
[[nodiscard]] int RunLaunchStep(std::span<const std::string> words);

}  // namespace trainyard::supervisor
