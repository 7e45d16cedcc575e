// SPDX-License-Identifier: Apache-2.0
// salloc, and srun outside of the nodes of a job: nodes are held by a job, and srun reaches them as
// `trainyard attach` does, by starting the srun of scripts on the first of them.
#include <fmt/format.h>
#include <pwd.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/running.h"
#include "cli/slurm/allocation.h"
#include "cli/slurm/slurm_commands.h"
#include "requests/slurm/sbatch_options.h"
#include "requests/slurm/srun_options.h"
#include "service/signals.h"
#include "supervisor/attempt_folder.h"
#include "supervisor/steps/slurm_tools.h"

namespace trainyard::cli {
namespace {

using requests::OptionPart;
using PartOf = OptionPart (*)(std::string_view name);
using Given = std::vector<std::pair<const SlurmOption*, std::string>>;

constexpr int kFailed = 1;
constexpr int kWrongOption = 255;
constexpr int kBySignal = 128;
constexpr const char* kSrun = "srun";
constexpr const char* kSalloc = "salloc";
// What the job is to be; the others are those of the step.
Given OfAllocation(const SlurmWords& words, PartOf part_of) {
  Given options;
  for (const auto& [option, value] : words.options) {
    if (part_of(option->name) == OptionPart::kJob) {
      options.emplace_back(requests::SbatchOptionNamed(option->name), value);
    }
  }
  return options;
}

std::string NameOf(const std::string& command) { return command.substr(command.rfind('/') + 1); }

std::string Here() {
  std::error_code error;
  const std::string folder = std::filesystem::current_path(error).string();
  return error ? "/" : folder;
}

[[noreturn]] void Become(const char* command, std::vector<std::string> words, int status) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) {
    pointers.push_back(word.data());
  }
  pointers.push_back(nullptr);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execvp(pointers.front(), pointers.data());
  SlurmError(command, errno == ENOENT ? fmt::format("_fork_command: Unable to find command \"{}\"",
                                                    words.front())
                                      : fmt::format("{}: {}", words.front(), std::strerror(errno)));
  _exit(status);
}

// The srun of scripts with those options that its step has.
std::vector<std::string> StepWords(const SlurmWords& words, bool in_folder) {
  std::vector<std::string> step{kSrun};
  if (!words.Has("disable-status")) {
    step.emplace_back("--confirm-interrupt");
  }
  if (in_folder) {
    step.insert(step.end(), {"-D", words.Value("chdir").value_or(Here())});
  }
  for (const auto& [option, value] : words.options) {
    const bool of_both = option->name == "cpus-per-task" || in_folder;
    const OptionPart part = requests::PartOfSrun(option->name);
    if (part != OptionPart::kCommand && option->name != "chdir" &&
        (part == OptionPart::kStep || of_both)) {
      step.push_back(fmt::format("--{}{}{}", option->name, value.empty() ? "" : "=", value));
    }
  }
  return step;
}

// Runs srun on the first node of the job; the command itself where it is to have the terminal.
[[noreturn]] void BecomeStep(std::uint64_t job, const SlurmWords& words, bool in_folder) {
  std::vector<std::string> step{ThisProgram(), "attach", std::to_string(job)};
  if (in_folder && words.Value("export").value_or("ALL") != "NONE") {
    step.emplace_back("--export-all");  // what the shell has now, not what it had at the beginning
  }
  if (words.Has("pty")) {
    step.insert(step.end(), {"--pty", "--"});
    if (in_folder) {
      step.insert(step.end(), {"/bin/sh", "-c", "cd \"$0\"; exec \"$@\"", Here()});
    }
  } else {
    step.insert(step.end(), {"--no-pty", "--"});
    const std::vector<std::string> srun = StepWords(words, in_folder);
    step.insert(step.end(), srun.begin(), srun.end());
  }
  step.insert(step.end(), words.rest.begin(), words.rest.end());
  Become(kSrun, std::move(step), kFailed);
}

// "NAME=VALUE" of what a script of the job has that says what the job is.
std::vector<std::string> VariablesOf(std::uint64_t job) {
  constexpr std::array<std::string_view, 6> kOfProcess{
      "SLURM_PROCID=", "SLURM_LOCALID=",  "SLURM_NODEID=",
      "SLURM_GTIDS=",  "SLURM_TASK_PID=", "SLURM_LAUNCH_NODE_IPADDR="};
  std::vector<std::string> variables;
  const std::string command =
      fmt::format("'{}' attach {} --no-pty -- env -0 </dev/null", ThisProgram(), job);
  std::string said;
  if (std::FILE* const pipe = popen(command.c_str(), "r")) {
    std::array<char, 4096> piece{};
    while (const std::size_t got = std::fread(piece.data(), 1, piece.size(), pipe)) {
      said.append(piece.data(), got);
    }
    pclose(pipe);
  }
  for (const std::string_view text : base::Split(said, std::string_view("\0", 1))) {
    const bool of_process =
        std::any_of(kOfProcess.begin(), kOfProcess.end(),
                    [text](std::string_view begin) { return text.starts_with(begin); });
    if (text.starts_with("SLURM_") && !of_process) {
      variables.emplace_back(text);
    }
  }
  return variables;
}

std::vector<std::string> CommandOf(const SlurmWords& words) {
  if (!words.rest.empty()) {
    return words.rest;
  }
  const passwd* const user = getpwuid(getuid());
  const bool has_shell = user != nullptr && user->pw_shell != nullptr && *user->pw_shell != '\0';
  return {has_shell ? user->pw_shell : "/bin/sh"};
}

// What the command gets when the allocation is lost; 0: nothing.
int SignalOfLoss(const SlurmWords& words) {
  if (const std::optional<std::string> named = words.Value("kill-command")) {
    return named->empty() ? SIGTERM
                          : base::ToInteger<int>(*named).value_or(service::SignalNamed(*named));
  }
  return words.rest.empty() ? SIGHUP : 0;
}

// Until the command has ended: its exit status. What is typed reaches it by itself, as it is of the
// same process group.
int RunHere(Allocation& allocation, const SlurmWords& words, const BlockedSignals& signals) {
  constexpr std::chrono::milliseconds kPause(50);
  constexpr int kLookEvery = 40;
  const std::vector<std::string> variables = VariablesOf(allocation.job());
  const pid_t child = fork();
  if (child == 0) {
    unsetenv(supervisor::AttemptFolder::kMarkVariable);  // of a job in which salloc itself runs
    for (const std::string& variable : variables) {
      const std::size_t equals = variable.find('=');
      setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
    }
    Become(kSalloc, CommandOf(words), kFailed);
  }
  bool revoked = false;
  int status = 0;
  for (int looks = 1; child > 0 && waitpid(child, &status, WNOHANG) == 0; ++looks) {
    const int signal = signals.Await(kPause);
    const bool typed = signal == SIGINT || signal == SIGQUIT;
    if (signal != 0 && !typed) {
      kill(child, signal);
    }
    if (looks % kLookEvery == 0 && !revoked && !allocation.IsHeld()) {
      revoked = true;
      allocation.TellRevoked();
      if (const int lost = SignalOfLoss(words); lost > 0) {
        kill(child, lost);
      }
    }
  }
  if (!revoked) {
    allocation.Say(fmt::format("Relinquishing job allocation {}", allocation.job()));
  }
  return WIFSIGNALED(status) ? kBySignal + WTERMSIG(status) : WEXITSTATUS(status);
}

int Fail(const char* command, const Error& error) {
  for (const std::string_view line : base::Split(error.message, "\n")) {
    SlurmError(command, line);
  }
  return kFailed;
}

Result<Allocation> Allocate(const char* command, const SlurmWords& words, PartOf part_of,
                            const std::string& name) {
  Result<Allocation> allocation = Allocation::Prepare(command);
  if (!allocation.ok()) {
    return allocation;
  }
  if (const Status asked = allocation.value().Ask(OfAllocation(words, part_of), name);
      !asked.ok()) {
    return asked.error();
  }
  return allocation;
}

}  // namespace

int Salloc(const std::vector<std::string>& words) {
  const std::optional<SlurmWords> read =
      ReadSlurmWords(kSalloc, words, requests::SallocOptions(), /*stops=*/true);
  if (!read) {
    return kWrongOption;
  }
  const BlockedSignals signals({SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT});
  Result<Allocation> allocation = Allocate(kSalloc, *read, requests::PartOfSalloc, "interactive");
  if (!allocation.ok()) {
    return Fail(kSalloc, allocation.error());
  }
  if (!allocation.value().Await(signals)) {
    return kFailed;
  }
  allocation.value().Say(fmt::format("Granted job allocation {}", allocation.value().job()));
  if (read->Has("no-shell")) {
    allocation.value().Leave();
    return 0;
  }
  return RunHere(allocation.value(), *read, signals);
}

int Srun(const std::vector<std::string>& words) {
  if (std::getenv(supervisor::AttemptFolder::kMarkVariable) != nullptr) {
    return supervisor::RunSrun(words);
  }
  const std::optional<SlurmWords> read =
      ReadSlurmWords(kSrun, words, requests::SrunOptions(), /*stops=*/true);
  if (!read) {
    return kWrongOption;
  }
  if (read->rest.empty()) {
    fmt::print(stderr, "{}: fatal: No command given to execute.\n", kSrun);
    return kFailed;
  }
  const char* const of_shell = std::getenv("SLURM_JOB_ID");
  const std::string number = read->Value("jobid").value_or(of_shell == nullptr ? "" : of_shell);
  if (!number.empty()) {
    const auto job = base::ToInteger<std::uint64_t>(number);
    if (!job) {
      return SlurmError(kSrun, "Invalid job id: " + number);
    }
    BecomeStep(*job, *read, true);
  }
  const BlockedSignals signals({SIGINT, SIGTERM, SIGHUP, SIGQUIT});
  Result<Allocation> allocation =
      Allocate(kSrun, *read, requests::PartOfSrun, NameOf(read->rest.front()));
  if (!allocation.ok()) {
    return Fail(kSrun, allocation.error());
  }
  if (!allocation.value().Await(signals)) {
    return kFailed;
  }
  allocation.value().HandToExec();
  BecomeStep(allocation.value().job(), *read, false);
}

}  // namespace trainyard::cli
