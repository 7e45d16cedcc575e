// SPDX-License-Identifier: Apache-2.0
#include "supervisor/worker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "io/descriptor.h"
#include "supervisor/exec_pointers.h"

namespace trainyard::supervisor {
namespace {

enum class Step : int { kPrepare, kEnterFolder, kExecute };

// What a child tells that could not become the command.
struct Refusal {
  Step step = Step::kPrepare;
  int error = 0;
};

void UseDefaultSignals() {
  for (int signal = 1; signal < NSIG; ++signal) {
    ::signal(signal, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Standard input, output and error; false: errno says why.
bool TakeStreams(const WorkerCommand& worker, const io::Descriptor& log) {
  const io::Descriptor nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const WorkerCommand::Streams& streams = worker.streams;
  const auto or_else = [](int given, const io::Descriptor& other) {
    return given >= 0 ? given : other.get();
  };
  return dup2(or_else(streams.input, nothing), STDIN_FILENO) >= 0 &&
         dup2(or_else(streams.output, log), STDOUT_FILENO) >= 0 &&
         dup2(or_else(streams.errors, log), STDERR_FILENO) >= 0 &&
         (!streams.terminal || ioctl(STDIN_FILENO, TIOCSCTTY, 0) == 0);
}

// False: errno says why.
bool PrepareChild(const WorkerCommand& worker, pid_t parent, const io::Descriptor& log) {
  const bool has_group = worker.streams.own_session ? setsid() >= 0 : setpgid(0, worker.group) == 0;
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || !has_group || !TakeStreams(worker, log)) {
    return false;
  }
  if (getppid() != parent) {  // it ended before its end could be told
    _exit(kNotStarted);
  }
  UseDefaultSignals();
  umask(worker.mask);
  close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  return true;
}

Refusal BecomeWorker(const WorkerCommand& worker, pid_t parent, const io::Descriptor& log) {
  if (!PrepareChild(worker, parent, log)) {
    return {.step = Step::kPrepare, .error = errno};
  }
  const std::string& folder = worker.working_directory;
  if (!folder.empty() && chdir(folder.c_str()) != 0) {
    return {.step = Step::kEnterFolder, .error = errno};
  }
  const std::vector<char*> command = ExecPointers(worker.command);
  std::vector<char*> environment = ExecPointers(worker.environment);
  environ = environment.data();  // execvp looks there for the PATH
  execvp(command.front(), command.data());
  return {.step = Step::kExecute, .error = errno};
}

// Whether it can be the machine's doing only, whatever the command.
bool IsOfTheMachine(int error) {
  switch (error) {
    case EAGAIN:
    case EIO:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOSPC:
    case ESTALE:
    case ETIMEDOUT:
      return true;
    default:
      return false;
  }
}

StartFailure Explain(const WorkerCommand& worker, const Refusal& refusal) {
  const std::string reason = std::generic_category().message(refusal.error);
  const bool of_the_machine = IsOfTheMachine(refusal.error);
  switch (refusal.step) {
    case Step::kPrepare:
      break;
    case Step::kEnterFolder:
      return {kNotStarted,
              fmt::format("working directory '{}': {}", worker.working_directory, reason),
              of_the_machine ? v1::AttemptReport::FOLDER : v1::AttemptReport::NO_FOLDER};
    case Step::kExecute:
      return {refusal.error == ENOENT ? kCommandNotFound : kNotStarted,
              fmt::format("command '{}': {}{}", worker.command.front(), reason,
                          HintForScript(worker.command.front())),
              of_the_machine ? v1::AttemptReport::SPAWN : v1::AttemptReport::NO_PROGRAM};
  }
  return {kNotStarted, "a worker cannot be started: " + reason, v1::AttemptReport::SPAWN};
}

}  // namespace

std::string HintForScript(const std::string& word) {
  return word.ends_with(".py") ? fmt::format("; expected python3 {}", word) : std::string();
}

std::variant<pid_t, StartFailure> StartWorker(const WorkerCommand& worker) {
  constexpr mode_t kMine = 0600;
  const io::Descriptor log(
      open(worker.log.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, kMine));
  std::array<int, 2> ends{};
  if (!log.open() || pipe2(ends.data(), O_CLOEXEC) != 0) {
    return StartFailure{
        kNotStarted,
        fmt::format("log '{}': {}", worker.log, std::generic_category().message(errno)),
        v1::AttemptReport::DISK};
  }
  const io::Descriptor reader(ends[0]);
  io::Descriptor writer(ends[1]);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) {
    return Explain(worker, {.error = errno});
  }
  Refusal refusal;
  if (child == 0) {
    refusal = BecomeWorker(worker, parent, log);
    [[maybe_unused]] const ssize_t told = write(writer.get(), &refusal, sizeof(refusal));
    _exit(kNotStarted);
  }
  writer.Close();
  // The pipe closes unused when the child has become the command.
  if (read(reader.get(), &refusal, sizeof(refusal)) != sizeof(refusal)) {
    return child;
  }
  waitpid(child, nullptr, 0);
  return Explain(worker, refusal);
}

}  // namespace trainyard::supervisor
