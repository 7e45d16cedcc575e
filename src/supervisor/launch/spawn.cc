// SPDX-License-Identifier: Apache-2.0
#include "supervisor/launch/spawn.h"

#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include "supervisor/exec_pointers.h"

namespace trainyard::supervisor {

int Spawn(const std::vector<std::string>& command, char* const* environment, pid_t& pid,
          SpawnFiles files) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigfillset(&signals);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (files.in >= 0) {
    posix_spawn_file_actions_adddup2(&actions, files.in, STDIN_FILENO);
  }
  if (files.err >= 0) {
    posix_spawn_file_actions_adddup2(&actions, files.err, STDERR_FILENO);
  }
  const std::vector<char*> arguments = ExecPointers(command);
  const int error =
      posix_spawnp(&pid, arguments.front(), &actions, &attributes, arguments.data(), environment);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return error;
}

}  // namespace trainyard::supervisor
