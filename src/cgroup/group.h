// SPDX-License-Identifier: Apache-2.0
// The control group of one attempt: what its processes may use at most, and how all of them are
// found and killed. One interface for version 1, version 2, and both beside one another.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cgroup/device_filter.h"
#include "cgroup/hierarchies.h"
#include "trainyard/status.h"

namespace trainyard::cgroup {

struct Limits {
  std::int64_t memory_mib = 0;  // 0: no limit
  std::int64_t milli_cpus = 0;  // CPU time per time; 0: no limit
  std::string cpus;             // "0-3,8"; empty: those of the group above
  std::int64_t processes = 0;   // threads count; 0: no limit
};

class Group {
 public:
  // `name` is the path below the mount points: "trainyard/7-2".
  Group(Hierarchies hierarchies, std::string name)
      : hierarchies_(std::move(hierarchies)), name_(std::move(name)) {}

  // Makes the group, and those above it. Error: it is there already with processes in it.
  [[nodiscard]] Status Make(const Limits& limits) const;
  // Changes the limits. Those that are 0 or empty stay as they are.
  [[nodiscard]] Status Limit(const Limits& limits) const;
  // Nothing in the group can open these devices from now on.
  [[nodiscard]] Status Forbid(const std::vector<Device>& devices) const;
  // The process and all that it starts from then on; no right of its user takes them out again.
  [[nodiscard]] Status Join(pid_t process) const;

  // All processes that are in it, ascending. None where the group is not there.
  [[nodiscard]] std::vector<pid_t> Members() const;
  // How often the kernel has killed a process of it because its memory was used up.
  [[nodiscard]] std::int64_t MemoryKills() const;
  // Kills all of it. Nothing can escape by forking: the group can start no more processes. Error:
  // processes are left after so long (they hang in the kernel).
  [[nodiscard]] Status KillAll(std::chrono::milliseconds patience) const;
  // REQUIRES: no process is in it. Nothing where it is not there.
  [[nodiscard]] Status Remove() const;

  [[nodiscard]] const std::string& name() const { return name_; }
  // Its folders, each once.
  [[nodiscard]] std::vector<std::string> Folders() const;

 private:
  [[nodiscard]] std::string FolderOf(std::string_view controller) const;
  [[nodiscard]] std::vector<std::string> Mounts() const;
  [[nodiscard]] Status EnableControllers() const;
  [[nodiscard]] Status CopyCpuset() const;
  [[nodiscard]] Status LimitMemory(std::int64_t mib) const;
  [[nodiscard]] Status LimitCpu(std::int64_t milli_cpus) const;
  void StopForks() const;

  Hierarchies hierarchies_;
  std::string name_;
};

// Of this process' own group, in bytes.
struct MemoryUse {
  std::int64_t most = 0;   // that it has ever had at a time
  std::int64_t limit = 0;  // 0: there is none
};
[[nodiscard]] MemoryUse MemoryAroundMe();
// How often the kernel has killed a process of this process' own group for its memory; 0 also where
// that cannot be found out.
[[nodiscard]] std::int64_t MemoryKillsAroundMe();
// The same of any process of this machine; nothing: it does not count them.
[[nodiscard]] std::optional<std::int64_t> MemoryKillsOnMachine();

}  // namespace trainyard::cgroup
