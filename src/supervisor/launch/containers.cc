// SPDX-License-Identifier: Apache-2.0
#include "supervisor/launch/containers.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <variant>

#include "supervisor/launch/launch_command.h"
#include "supervisor/process_table.h"
#include "supervisor/worker.h"

namespace trainyard::supervisor {
namespace {

void SignalPodman(pid_t pid, int signal) {
  if (const std::optional<Process> podman = FindProcess(pid); podman.has_value()) {
    SendSignal(*podman, signal);
  }
}

}  // namespace

void ContainerSignals::Send(int local_rank, pid_t podman, int signal,
                            const std::vector<std::string>& environment) {
  const std::variant<pid_t, StartFailure> sent =
      StartWorker({.command = SignalCommand(start_, local_rank, folder_, signal),
                   .environment = environment,
                   .log = folder_.PathOf("supervisor.log")});
  if (const pid_t* const messenger = std::get_if<pid_t>(&sent); messenger != nullptr) {
    under_way_.push_back({.messenger = *messenger, .podman = podman, .signal = signal});
  } else {
    SignalPodman(podman, signal);
  }
}

bool ContainerSignals::NoteEnd(pid_t child, int exit_code) {
  for (Sent& sent : under_way_) {
    sent.podman = sent.podman == child ? 0 : sent.podman;  // the number may be another's soon
  }
  const auto sent = std::find_if(under_way_.begin(), under_way_.end(),
                                 [child](const Sent& s) { return s.messenger == child; });
  if (sent == under_way_.end()) {
    return false;
  }
  if (exit_code != 0 && sent->podman != 0) {
    SignalPodman(sent->podman, sent->signal);
  }
  under_way_.erase(sent);
  return true;
}

std::optional<int> ContainerWatchedBy(pid_t child, const v1::StartAttempt& start,
                                      const AttemptFolder& folder) {
  for (int rank = 0; start.launch().has_container() && rank < ProcessesOf(start); ++rank) {
    const Result<std::string> pid =
        AttemptFolder::ReadPlain(folder.PathOf(ContainerPidFile(rank).c_str()));
    if (pid.ok() && pid.value() == std::to_string(child)) {
      return rank;
    }
  }
  return std::nullopt;
}

void CleanUpContainer(int local_rank, const v1::StartAttempt& start, const AttemptFolder& folder,
                      const std::vector<std::string>& environment) {
  static_cast<void>(StartWorker({.command = CleanUpCommand(start, local_rank, folder),
                                 .environment = environment,
                                 .log = folder.PathOf("supervisor.log")}));
}

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
