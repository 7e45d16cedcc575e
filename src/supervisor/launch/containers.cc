// SPDX-License-Identifier: Apache-2.0
#include "supervisor/launch/containers.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <thread>
#include <variant>

#include "supervisor/launch/launch_command.h"
#include "supervisor/worker.h"

namespace trainyard::supervisor {

void RemoveContainers(const v1::StartAttempt& start, const AttemptFolder& folder,
                      const std::vector<std::string>& environment) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds kLongest(20);
  const std::vector<std::string> command = RemovalCommand(start, folder);
  if (command.empty()) {
    return;
  }
  const std::variant<pid_t, StartFailure> removal = StartWorker(
      {.command = command, .environment = environment, .log = folder.PathOf("supervisor.log")});
  const pid_t* const pid = std::get_if<pid_t>(&removal);
  const Clock::time_point end = Clock::now() + kLongest;
  while (pid != nullptr && waitpid(*pid, nullptr, WNOHANG) == 0) {
    if (Clock::now() > end) {
      fmt::print(stderr, "trainyard supervise: podman does not remove the attempt's containers\n");
      kill(*pid, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace trainyard::supervisor
