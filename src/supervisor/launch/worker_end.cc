// SPDX-License-Identifier: Apache-2.0
#include "supervisor/launch/worker_end.h"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "cgroup/group.h"
#include "supervisor/launch/last_line.h"

namespace trainyard::supervisor {
namespace {

constexpr int kSignalled = 128;
// How the first line of a log begins that says in which files the output is.
constexpr std::string_view kFilesLine = "trainyard: ";

// "9 (SIGKILL)"; empty: there is no such signal.
std::string SignalText(int signal) {
  const char* const name = sigabbrev_np(signal);
  return name == nullptr ? std::string() : fmt::format("{} (SIG{})", signal, name);
}

// What ends a process with no word of its own.
bool SaysNothing(int signal) { return signal == SIGKILL || signal == SIGTERM; }

// The file that has the errors in place of the log; empty: the log has them.
std::string ErrorFileOf(const std::string& log) {
  constexpr std::string_view kErrors = "errors go to ";
  constexpr std::size_t kLongest = 4096;
  std::ifstream in(log, std::ios::binary);
  std::string line(kLongest, '\0');
  in.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<std::size_t>(in.gcount()));
  line.resize(std::min(line.find('\n'), line.size()));
  const std::size_t at = line.find(kErrors);
  return line.starts_with(kFilesLine) && at != std::string::npos ? line.substr(at + kErrors.size())
                                                                 : std::string();
}

}  // namespace

MemoryWatch::MemoryWatch()
    : in_group_(cgroup::MemoryKillsAroundMe()), on_machine_(cgroup::MemoryKillsOnMachine()) {}

std::string MemoryWatch::Verdict() const {
  if (cgroup::MemoryKillsAroundMe() > in_group_) {
    return "memory has run out in its control group";
  }
  const std::optional<std::int64_t> now = cgroup::MemoryKillsOnMachine();
  if (!now || !on_machine_) {
    return {};
  }
  return *now > *on_machine_ ? "memory has run out on this machine" : "memory has not run out";
}

int ExitCodeOf(int status) {
  return WIFSIGNALED(status) ? kSignalled + WTERMSIG(status) : WEXITSTATUS(status);
}

std::string TextOf(const WorkerEnd& end, const MemoryWatch& memory) {
  const bool signalled = WIFSIGNALED(end.status);
  const int code = ExitCodeOf(end.status);
  const int signal = code > kSignalled ? code - kSignalled : 0;
  const std::string by = SignalText(signal);
  std::string text = signalled ? fmt::format("worker {} was killed by signal {}", end.rank,
                                             by.empty() ? std::to_string(signal) : by)
                               : fmt::format("worker {} ended with exit code {}", end.rank, code);
  if (!signalled && !by.empty()) {
    text += ", as if killed by signal " + by;
  }
  if (const std::string verdict = signal == SIGKILL ? memory.Verdict() : ""; !verdict.empty()) {
    text += "; " + verdict;
  }
  const std::string file = ErrorFileOf(end.log);
  const bool is_relative = !file.empty() && file.front() != '/';
  const std::string path = is_relative ? end.folder + "/" + file : file;
  std::error_code error;
  const bool in_file = !file.empty() && std::filesystem::exists(path, error);
  std::string last = signalled && SaysNothing(signal) ? "" : LastLineIn(in_file ? path : end.log);
  if (!file.empty() && !in_file && last.starts_with(kFilesLine)) {
    last.clear();  // the script's shell has not said why it could not make the file
  }
  text += (last.empty() ? "" : ": ") + last;
  return in_file ? fmt::format("{} ({})", text, path)
                 : fmt::format("{} (trainyard logs {} --rank {})", text, end.job, end.rank);
}

}  // namespace trainyard::supervisor
