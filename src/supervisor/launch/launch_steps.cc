// SPDX-License-Identifier: Apache-2.0
#include "supervisor/launch/launch_steps.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <set>
#include <system_error>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "io/descriptor.h"
#include "supervisor/attempt_folder.h"
#include "supervisor/exec_pointers.h"
#include "supervisor/launch/launch_command.h"
#include "supervisor/launch/node_desk.h"
#include "supervisor/steps/step_tasks.h"
#include "supervisor/worker.h"
#include "supervisor/worker_environment.h"

namespace trainyard::supervisor {
namespace {

using Words = std::vector<std::string>;

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int Complain(const std::string& what) {
  fmt::print(stderr, "trainyard launch: {}\n", what);
  return 1;
}

// Comes back only if the command cannot be run.
int Become(const Words& words) {
  const std::vector<char*> arguments = ExecPointers(words);
  execvp(arguments.front(), arguments.data());
  const int error = errno;
  Complain(fmt::format("command '{}': {}", words.front(), std::generic_category().message(error)));
  return error == ENOENT ? kCommandNotFound : kNotStarted;
}

// mpirun hands over words as ssh would: joined they are a line for a shell.
int Rsh(const v1::StartAttempt& start, std::span<const std::string> words) {
  std::string_view host = words.front();
  const std::string_view prefix = kHostPrefix;
  const std::optional<double> rank =
      host.starts_with(prefix) ? base::ToNumber(host.substr(prefix.size())) : std::nullopt;
  if (!rank.has_value() || *rank < 1 || *rank >= start.nodes()) {
    return Complain(fmt::format("'{}' is no node of the attempt; expected {}1 to {}{}", host,
                                kHostPrefix, kHostPrefix, start.nodes() - 1));
  }
  const Status brought = BringNodeCommand(start, static_cast<int>(*rank),
                                          fmt::format("{}", fmt::join(words.subspan(1), " ")));
  return brought.ok() ? 0 : Complain(brought.error().message);
}

// What mpirun and its daemons have set is kept, so that the worker finds its peers.
int Rank(const v1::StartAttempt& start, const AttemptFolder& folder,
         std::span<const std::string> words) {
  const std::optional<double> local_rank = base::ToNumber(Variable("OMPI_COMM_WORLD_LOCAL_RANK"));
  if (!local_rank.has_value()) {
    return Complain("OMPI_COMM_WORLD_LOCAL_RANK is not set; expected to be started by mpirun");
  }
  RestoreTemporaryFolder();
  for (const std::string& variable : WorkerEnvironment(start, static_cast<int>(*local_rank), folder,
                                                       Variable("TRAINYARD_SOCKET"))) {
    const std::size_t equals = variable.find('=');
    setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
  }
  return Become({words.begin(), words.end()});
}

// Of this process' children some have ended.
void TakeEnds(std::set<pid_t>& children) {
  pid_t child = 0;
  while ((child = waitpid(-1, nullptr, WNOHANG)) > 0) {
    children.erase(child);
  }
}

int Hold(const v1::StartAttempt& start) {
  sigset_t taken;
  sigemptyset(&taken);
  sigaddset(&taken, SIGCHLD);
  sigaddset(&taken, SIGTERM);
  sigprocmask(SIG_BLOCK, &taken, nullptr);
  const io::Descriptor signals(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  std::set<pid_t> steps;
  std::uint64_t last = 0;
  for (bool leaves = false; !leaves || !steps.empty(); TakeEnds(steps)) {
    if (HasSteps(start) && !leaves) {
      if (const auto command = AwaitNodeCommand(start, last, signals.get())) {
        last = command->number;
        if (const pid_t step = StartCalledStep(start, command->text); step > 0) {
          steps.insert(step);
        }
      }
    } else {
      pollfd awaited{.fd = signals.get(), .events = POLLIN, .revents = 0};
      poll(&awaited, 1, -1);
    }
    signalfd_siginfo signal{};
    while (read(signals.get(), &signal, sizeof(signal)) == sizeof(signal)) {
      leaves = leaves || signal.ssi_signo == SIGTERM;
    }
  }
  return 0;
}

Result<int> Run(std::span<const std::string> words) {
  ASSIGN_OR_RETURN(const AttemptFolder folder,
                   AttemptFolder::At(Variable(AttemptFolder::kMarkVariable)));
  ASSIGN_OR_RETURN(const v1::StartAttempt start, folder.ReadStart());
  const std::string step = words.empty() ? "" : words.front();
  const std::span<const std::string> rest = words.subspan(words.empty() ? 0 : 1);
  if (step == "daemon" && rest.empty()) {
    const std::optional<NodeCommand> command = AwaitNodeCommand(start, 0, -1);
    return Become({"/bin/sh", "-c", command ? command->text : ""});
  }
  if (step == "hold" && rest.empty()) {
    return Hold(start);
  }
  if (step == "rsh" && rest.size() > 1) {
    return Rsh(start, rest);
  }
  if (step == "rank" && !rest.empty()) {
    return Rank(start, folder, rest);
  }
  return InvalidArgument(
      fmt::format("'{}'; expected rsh HOST COMMAND..., daemon, hold, or rank COMMAND...",
                  fmt::join(words, " ")));
}

}  // namespace

int RunLaunchStep(std::span<const std::string> words) {
  const Result<int> status = Run(words);
  return status.ok() ? status.value() : Complain(status.error().message);
}

}  // namespace trainyard::supervisor
