// SPDX-License-Identifier: Apache-2.0
#include "supervisor/process_table.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>

extern "C" {  // glibc 2.36 forgets it
#include <sys/pidfd.h>
}

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <numeric>
#include <set>
#include <sstream>

#include "base/text.h"
#include "io/descriptor.h"

namespace trainyard::supervisor {
namespace {

namespace fs = std::filesystem;

// Empty if it cannot be read. These files are small, and all of them are read at every look.
std::string ReadProc(const std::string& name) {
  const io::Descriptor file(open(("/proc/" + name).c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 4096> piece{};
  ssize_t got = 0;
  while ((got = read(file.get(), piece.data(), piece.size())) > 0 || (got < 0 && errno == EINTR)) {
    text.append(piece.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  }
  return text;
}

std::string ReadProc(pid_t pid, const char* name) {
  return ReadProc(std::to_string(pid) + "/" + name);
}

// "pid (name) state parent group session ...": the name may hold anything, blanks and brackets
// included. Numbers as in proc(5), less the three before the state.
std::optional<Process> ParseStat(pid_t pid, const std::string& stat) {
  constexpr int kUserTime = 11;
  constexpr int kThreads = 17;
  constexpr int kStart = 19;
  std::istringstream fields(stat.substr(std::min(stat.rfind(')'), stat.size() - 1) + 1));
  Process process{.pid = pid};
  char state = 0;
  std::uint64_t threads = 0;
  std::string skipped;
  fields >> state >> process.parent >> process.group >> process.session;
  for (int field = 4; field < kUserTime; ++field) {
    fields >> skipped;
  }
  std::array<std::uint64_t, 4> ticks{};  // user and system time, and those of children
  for (std::uint64_t& some : ticks) {
    fields >> some;
  }
  process.cpu_ticks = std::accumulate(ticks.begin(), ticks.end(), std::uint64_t{0});
  for (int field = kUserTime + static_cast<int>(ticks.size()); field < kThreads; ++field) {
    fields >> skipped;
  }
  fields >> threads;
  for (int field = kThreads + 1; field < kStart; ++field) {
    fields >> skipped;
  }
  fields >> process.start >> skipped >> process.resident_pages;
  // A process whose first thread has ended shows as a zombie while others go on.
  process.dead = (state == 'Z' && threads <= 1) || state == 'X';
  return fields ? std::optional(process) : std::nullopt;
}

std::vector<pid_t> AllPids() {
  std::vector<pid_t> pids;
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    pid_t pid = 0;
    const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (failed == std::errc{} && end == name.data() + name.size()) {
      pids.push_back(pid);
    }
  }
  return pids;
}

std::string BootId() {
  const std::string id = ReadProc("sys/kernel/random/boot_id");
  return id.substr(0, id.find('\n'));
}

// Whether the number is in use by another process than the one that was written down.
bool IsGivenOutAgain(pid_t pid, std::uint64_t start) {
  const std::optional<Process> now = FindProcess(pid);
  return now.has_value() && now->start != start;
}

bool WasStartedWith(pid_t pid, const std::string& variable) {
  const std::string environment = ReadProc(pid, "environ");
  const std::string_view nul("\0", 1);
  const std::vector<std::string_view> variables = base::Split(environment, nul);
  return std::find(variables.begin(), variables.end(), variable) != variables.end();
}

}  // namespace

std::optional<Process> FindProcess(pid_t pid) {
  const std::string stat = ReadProc(pid, "stat");
  return stat.empty() ? std::nullopt : ParseStat(pid, stat);
}

std::vector<Process> AllProcesses() {
  std::vector<Process> processes;
  for (const pid_t pid : AllPids()) {
    if (const std::optional<Process> process = FindProcess(pid); process.has_value()) {
      processes.push_back(*process);
    }
  }
  return processes;
}

std::vector<Process> DescendantsOf(pid_t ancestor) {
  const std::vector<Process> all = AllProcesses();
  std::set<pid_t> known{ancestor};
  std::vector<Process> descendants;
  // Numbers wrap around, so a child may well stand before its parent.
  for (bool more = true; more;) {
    more = false;
    for (const Process& process : all) {
      if (known.contains(process.parent) && known.insert(process.pid).second) {
        descendants.push_back(process);
        more = true;
      }
    }
  }
  return descendants;
}

std::string NameOf(const Process& process) {
  const std::string line = ReadProc(process.pid, "comm");
  return line.substr(0, line.find('\n'));
}

std::string ProgramOf(const Process& process) {
  std::error_code error;
  return fs::read_symlink(fmt::format("/proc/{}/exe", process.pid), error).string();
}

void SendSignal(const Process& process, int signal) {
  const io::Descriptor handle(pidfd_open(process.pid, 0));
  if (handle.open() && !IsGivenOutAgain(process.pid, process.start)) {
    pidfd_send_signal(handle.get(), signal, nullptr, 0);
  }
}

std::optional<ProcessGroup> ProcessGroup::Of(pid_t pid) {
  const std::optional<Process> process = FindProcess(pid);
  const std::optional<Process> leader = process ? FindProcess(process->group) : std::nullopt;
  const std::optional<Process> session = process ? FindProcess(process->session) : std::nullopt;
  if (!leader.has_value() || !session.has_value()) {
    return std::nullopt;
  }
  return ProcessGroup{.group = leader->pid,
                      .group_start = leader->start,
                      .session = session->pid,
                      .session_start = session->start,
                      .boot = BootId()};
}

std::string ProcessGroup::ToText() const {
  std::ostringstream text;
  text << group << ' ' << group_start << ' ' << session << ' ' << session_start << ' ' << boot;
  return text.str();
}

std::optional<ProcessGroup> ProcessGroup::FromText(const std::string& text) {
  std::istringstream fields(text);
  ProcessGroup group;
  fields >> group.group >> group.group_start >> group.session >> group.session_start >> group.boot;
  return fields ? std::optional(group) : std::nullopt;
}

std::vector<Process> MembersOf(const ProcessGroup& group) {
  // The kernel gives a number out again only when no process has it as group or session any more.
  if (group.boot != BootId() || IsGivenOutAgain(group.group, group.group_start) ||
      IsGivenOutAgain(group.session, group.session_start)) {
    return {};
  }
  std::vector<Process> members = AllProcesses();
  std::erase_if(members, [&group](const Process& process) {
    return process.dead || process.group != group.group || process.session != group.session ||
           process.start < group.group_start;
  });
  return members;
}

std::optional<Process> SessionLeaderOf(const ProcessGroup& group) {
  const std::optional<Process> leader = FindProcess(group.session);
  const bool same = leader.has_value() && leader->start == group.session_start;
  return same && group.boot == BootId() ? leader : std::nullopt;
}

std::vector<Process> StartedWith(const std::string& variable) {
  std::vector<Process> found = AllProcesses();
  std::erase_if(found, [&variable](const Process& process) {
    return process.dead || !WasStartedWith(process.pid, variable);
  });
  return found;
}

}  // namespace trainyard::supervisor
