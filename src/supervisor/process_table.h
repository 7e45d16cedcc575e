// SPDX-License-Identifier: Apache-2.0
// The machine's processes as /proc shows them, and signals that never hit a process which merely
// has the number of one that is gone.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trainyard::supervisor {

struct Process {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  std::uint64_t start = 0;           // in clock ticks since the machine was started
  std::uint64_t cpu_ticks = 0;       // CPU time, with that of its children whose end it has seen
  std::uint64_t resident_pages = 0;  // of memory, those that others have, too, included
  bool dead = false;                 // only waits for its parent to take notice
};

[[nodiscard]] std::optional<Process> FindProcess(pid_t pid);
[[nodiscard]] std::vector<Process> AllProcesses();
// Its children, their children and so on.
[[nodiscard]] std::vector<Process> DescendantsOf(pid_t ancestor);
// What it calls itself, and the file that it runs; empty: it is gone, or another user's.
[[nodiscard]] std::string NameOf(const Process& process);
[[nodiscard]] std::string ProgramOf(const Process& process);
// Does nothing where the process is gone.
void SendSignal(const Process& process, int signal);

// A process group in a form that outlasts the process that wrote it down: numbers of processes are
// given out again, and after a start of the machine all of them.
struct ProcessGroup {
  pid_t group = 0;
  std::uint64_t group_start = 0;  // of the process that has this number
  pid_t session = 0;
  std::uint64_t session_start = 0;
  std::string boot;  // names the start of the machine

  // The one of a living process.
  [[nodiscard]] static std::optional<ProcessGroup> Of(pid_t pid);
  [[nodiscard]] std::string ToText() const;
  [[nodiscard]] static std::optional<ProcessGroup> FromText(const std::string& text);
};

// All living processes of the group.
[[nodiscard]] std::vector<Process> MembersOf(const ProcessGroup& group);
[[nodiscard]] std::optional<Process> SessionLeaderOf(const ProcessGroup& group);
// All living processes that were started with this environment variable ("NAME=value"). Finds only
// those that this user may look into and that have not written over their environment.
[[nodiscard]] std::vector<Process> StartedWith(const std::string& variable);

}  // namespace trainyard::supervisor
