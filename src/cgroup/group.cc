// SPDX-License-Identifier: Apache-2.0
#include "cgroup/group.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <set>
#include <sstream>
#include <system_error>
#include <thread>

#include "base/try.h"

namespace trainyard::cgroup {
namespace {

constexpr std::int64_t kPeriodUs = 100'000;

std::string Reason() { return std::generic_category().message(errno); }

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The kernel takes such a text as one write, and answers to it.
Status WriteTo(const std::string& path, const std::string& text) {
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  const bool written =
      file >= 0 && write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  Status status =
      written ? Status() : Status(Failed(fmt::format("{}: '{}': {}", path, text, Reason())));
  if (file >= 0) {
    close(file);
  }
  return status;
}

Status MakeFolders(const std::string& mount, const std::string& name) {
  std::istringstream parts(name);
  std::string path = mount;
  for (std::string part; std::getline(parts, part, '/');) {
    path += "/" + part;
    if (mkdir(path.c_str(), S_IRWXU | S_IRGRP | S_IXGRP | S_IROTH | S_IXOTH) != 0 &&
        errno != EEXIST) {
      return Failed(fmt::format("{}: cannot be made: {}", path, Reason()));
    }
  }
  return {};
}

// The group itself and those above it, below the mount point: "a", "a/b".
std::vector<std::string> Upwards(const std::string& name) {
  std::vector<std::string> paths;
  for (std::size_t end = 0; end != std::string::npos;) {
    end = name.find('/', end + 1);
    paths.push_back(name.substr(0, end));
  }
  return paths;
}

void AddMembers(const std::string& folder, std::set<pid_t>& members) {
  std::istringstream numbers(TextOf(folder + "/cgroup.procs"));
  for (pid_t pid = 0; numbers >> pid;) {
    members.insert(pid);
  }
}

// The number of "NAME NUMBER" among the lines.
std::int64_t FieldOf(const std::string& text, std::string_view name) {
  std::istringstream fields(text);
  std::string field;
  for (std::int64_t value = 0; fields >> field >> value;) {
    if (field == name) {
      return value;
    }
  }
  return 0;
}

std::int64_t KillsIn(const std::string& folder) {
  // Version 2 and version 1: one of them is there.
  return FieldOf(TextOf(folder + "/memory.events"), "oom_kill") +
         FieldOf(TextOf(folder + "/memory.oom_control"), "oom_kill");
}

bool IsThere(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

}  // namespace

// ----------------------------------------------------------------------------------------- places

std::vector<std::string> Group::Mounts() const {
  std::set<std::string> mounts;
  for (const std::string_view controller : kControllers) {
    if (const auto mount = hierarchies_.MountOf(controller)) {
      mounts.insert(*mount);
    }
  }
  if (!hierarchies_.unified.empty()) {
    mounts.insert(hierarchies_.unified);
  } else if (const auto devices = hierarchies_.v1.find("devices");
             devices != hierarchies_.v1.end()) {
    mounts.insert(devices->second);
  }
  return {mounts.begin(), mounts.end()};
}

std::vector<std::string> Group::Folders() const {
  std::vector<std::string> folders = Mounts();
  for (std::string& folder : folders) {
    folder += "/" + name_;
  }
  return folders;
}

std::string Group::FolderOf(std::string_view controller) const {
  const auto mount = hierarchies_.MountOf(controller);
  return mount.has_value() ? *mount + "/" + name_ : std::string();
}

// ----------------------------------------------------------------------------------------- making

// Version 2 hands controllers down one level at a time.
Status Group::EnableControllers() const {
  if (!hierarchies_.unified_controls) {
    return {};
  }
  std::vector<std::string> above = Upwards(name_);
  above.pop_back();
  above.insert(above.begin(), "");
  for (const std::string& path : above) {
    const std::string folder = hierarchies_.unified + (path.empty() ? "" : "/" + path);
    RETURN_IF_ERROR(MakeFolders(hierarchies_.unified, path));
    RETURN_IF_ERROR(WriteTo(folder + "/cgroup.subtree_control", "+memory +cpu +cpuset +pids"));
  }
  return {};
}

// A new group of version 1 has no CPUs and no memory nodes, and takes no process like that.
Status Group::CopyCpuset() const {
  const auto mount = hierarchies_.v1.find("cpuset");
  if (hierarchies_.unified_controls || mount == hierarchies_.v1.end()) {
    return {};
  }
  std::string above = mount->second;
  for (const std::string& path : Upwards(name_)) {
    const std::string folder = mount->second + "/" + path;
    for (const char* const file : {"/cpuset.cpus", "/cpuset.mems"}) {
      if (TextOf(folder + file).find_first_not_of(" \n") == std::string::npos) {
        RETURN_IF_ERROR(WriteTo(folder + file, TextOf(above + file)));
      }
    }
    above = folder;
  }
  return {};
}

Status Group::Make(const Limits& limits) const {
  RETURN_IF_ERROR(EnableControllers());
  for (const std::string& mount : Mounts()) {
    RETURN_IF_ERROR(MakeFolders(mount, name_));
  }
  if (const std::vector<pid_t> members = Members(); !members.empty()) {
    return Failed(fmt::format("control group {}: is there with {} processes; expected none", name_,
                              members.size()));
  }
  RETURN_IF_ERROR(CopyCpuset());
  if (hierarchies_.unified_controls) {  // the kernel kills all of it, never one of it
    RETURN_IF_ERROR(WriteTo(FolderOf("memory") + "/memory.oom.group", "1"));
  }
  return Limit(limits);
}

Status Group::LimitMemory(std::int64_t mib) const {
  const std::string bytes = std::to_string(mib << 20);
  const std::string folder = FolderOf("memory");
  if (hierarchies_.unified_controls) {
    RETURN_IF_ERROR(WriteTo(folder + "/memory.max", bytes));
    return IsThere(folder + "/memory.swap.max") ? WriteTo(folder + "/memory.swap.max", "0")
                                                : Status();
  }
  // Memory with swap is never less than memory, so the order depends on which way the limit goes.
  const std::string memory = folder + "/memory.limit_in_bytes";
  const std::string both = folder + "/memory.memsw.limit_in_bytes";
  if (!IsThere(both)) {
    return WriteTo(memory, bytes);
  }
  if (WriteTo(both, bytes).ok()) {
    return WriteTo(memory, bytes);
  }
  RETURN_IF_ERROR(WriteTo(memory, bytes));
  return WriteTo(both, bytes);
}

Status Group::LimitCpu(std::int64_t milli_cpus) const {
  const std::int64_t quota = std::max<std::int64_t>(1000, milli_cpus * kPeriodUs / 1000);
  const std::string folder = FolderOf("cpu");
  if (hierarchies_.unified_controls) {
    return WriteTo(folder + "/cpu.max", fmt::format("{} {}", quota, kPeriodUs));
  }
  RETURN_IF_ERROR(WriteTo(folder + "/cpu.cfs_period_us", std::to_string(kPeriodUs)));
  return WriteTo(folder + "/cpu.cfs_quota_us", std::to_string(quota));
}

Status Group::Limit(const Limits& limits) const {
  const auto missing = [this](std::string_view controller) {
    return hierarchies_.MountOf(controller).has_value()
               ? Status()
               : Status(Failed(fmt::format(
                     "control group {}: the controller {} is not mounted; expected it, as the job "
                     "has a limit of that kind",
                     name_, controller)));
  };
  if (limits.memory_mib > 0) {
    RETURN_IF_ERROR(missing("memory"));
    RETURN_IF_ERROR(LimitMemory(limits.memory_mib));
  }
  if (limits.milli_cpus > 0) {
    RETURN_IF_ERROR(missing("cpu"));
    RETURN_IF_ERROR(LimitCpu(limits.milli_cpus));
  }
  if (!limits.cpus.empty()) {
    RETURN_IF_ERROR(missing("cpuset"));
    RETURN_IF_ERROR(WriteTo(FolderOf("cpuset") + "/cpuset.cpus", limits.cpus));
  }
  if (limits.processes > 0) {
    RETURN_IF_ERROR(missing("pids"));
    RETURN_IF_ERROR(WriteTo(FolderOf("pids") + "/pids.max", std::to_string(limits.processes)));
  }
  return {};
}

Status Group::Forbid(const std::vector<Device>& devices) const {
  if (devices.empty()) {
    return {};
  }
  if (!hierarchies_.unified.empty()) {
    return AttachFilter(hierarchies_.unified + "/" + name_, devices);
  }
  const auto mount = hierarchies_.v1.find("devices");
  if (mount == hierarchies_.v1.end()) {
    return Failed(fmt::format(
        "control group {}: devices cannot be kept apart: neither version 2 nor the controller "
        "devices of version 1 is mounted; expected one of them",
        name_));
  }
  for (const Device& device : devices) {
    RETURN_IF_ERROR(WriteTo(
        fmt::format("{}/{}/devices.deny", mount->second, name_),
        fmt::format("{} {}:{} rwm", device.is_block ? 'b' : 'c', device.major, device.minor)));
  }
  return {};
}

Status Group::Join(pid_t process) const {
  for (const std::string& folder : Folders()) {
    RETURN_IF_ERROR(WriteTo(folder + "/cgroup.procs", std::to_string(process)));
  }
  return {};
}

// ------------------------------------------------------------------------------------- its members

std::vector<pid_t> Group::Members() const {
  std::set<pid_t> members;
  for (const std::string& folder : Folders()) {
    AddMembers(folder, members);
  }
  return {members.begin(), members.end()};
}

std::int64_t Group::MemoryKills() const { return KillsIn(FolderOf("memory")); }

void Group::StopForks() const {
  if (const std::string folder = FolderOf("pids"); !folder.empty()) {
    static_cast<void>(WriteTo(folder + "/pids.max", "0").ok());  // all are killed again and again
  }
}

Status Group::KillAll(std::chrono::milliseconds patience) const {
  constexpr std::chrono::milliseconds kPause(2);
  const auto end = std::chrono::steady_clock::now() + patience;
  const std::string at_once =
      hierarchies_.unified.empty() ? "" : hierarchies_.unified + "/" + name_ + "/cgroup.kill";
  std::vector<pid_t> members = Members();
  if (!members.empty()) {
    StopForks();
  }
  while (!members.empty()) {
    if (!at_once.empty() && IsThere(at_once)) {
      static_cast<void>(WriteTo(at_once, "1").ok());  // whoever is left is killed one by one
    }
    for (const pid_t pid : members) {
      // Held by a descriptor, the number cannot become another process'; still in the group, it is
      // the one that is meant.
      const int handle = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
      const std::vector<pid_t> now = Members();
      if (handle >= 0 && std::binary_search(now.begin(), now.end(), pid)) {
        syscall(SYS_pidfd_send_signal, handle, SIGKILL, nullptr, 0);
      }
      if (handle >= 0) {
        close(handle);
      }
    }
    if (std::chrono::steady_clock::now() > end) {
      return Failed(
          fmt::format("control group {}: {} of its processes are left after they were "
                      "killed; they hang in the kernel",
                      name_, members.size()));
    }
    std::this_thread::sleep_for(kPause);
    members = Members();
  }
  return {};
}

Status Group::Remove() const {
  constexpr int kTries = 200;  // the last process may be on its way out
  for (const std::string& folder : Folders()) {
    int tries = 0;
    while (rmdir(folder.c_str()) != 0 && errno != ENOENT) {
      if (errno != EBUSY || ++tries > kTries) {
        return Failed(fmt::format("{}: cannot be removed: {}", folder, Reason()));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  return {};
}

namespace {

// The folder of this process' own group; empty: that cannot be found out.
std::string MemoryFolderAroundMe() {
  const Hierarchies hierarchies = Hierarchies::FromMounts(TextOf("/proc/self/mounts"));
  const auto mount = hierarchies.MountOf("memory");
  if (!mount.has_value()) {
    return {};
  }
  // "4:memory:/trainyard/7-2", "0::/trainyard/7-2"
  std::istringstream lines(TextOf("/proc/self/cgroup"));
  const std::string wanted = hierarchies.unified_controls ? "0::" : ":memory:";
  for (std::string line; std::getline(lines, line);) {
    if (const std::size_t at = line.find(wanted); at != std::string::npos) {
      return *mount + line.substr(at + wanted.size());
    }
  }
  return {};
}

// The number in the first of the files that has one; 0: none has, or it is no limit.
std::int64_t NumberIn(std::initializer_list<std::string> files) {
  constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;  // of version 1, in whole pages
  for (const std::string& file : files) {
    std::int64_t number = 0;
    if (std::istringstream text(TextOf(file)); text >> number) {
      return number < kNoLimit ? number : 0;
    }
  }
  return 0;
}

}  // namespace

MemoryUse MemoryAroundMe() {
  const std::string folder = MemoryFolderAroundMe();
  return folder.empty()
             ? MemoryUse()
             : MemoryUse{
                   .most = NumberIn({folder + "/memory.peak", folder + "/memory.max_usage_in_bytes",
                                     folder + "/memory.current"}),
                   .limit = NumberIn({folder + "/memory.max", folder + "/memory.limit_in_bytes"})};
}

std::int64_t MemoryKillsAroundMe() {
  const std::string folder = MemoryFolderAroundMe();
  return folder.empty() ? 0 : KillsIn(folder);
}

std::optional<std::int64_t> MemoryKillsOnMachine() {
  const std::string counts = TextOf("/proc/vmstat");
  return counts.find("\noom_kill ") == std::string::npos
             ? std::nullopt
             : std::optional(FieldOf(counts, "oom_kill"));
}

}  // namespace trainyard::cgroup
