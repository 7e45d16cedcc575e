// SPDX-License-Identifier: Apache-2.0
#include "cgroup/hierarchies.h"

#include <fstream>
#include <iterator>
#include <sstream>

namespace trainyard::cgroup {
namespace {

std::string FileText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

bool HasWord(const std::string& text, std::string_view word) {
  std::istringstream words(text);
  for (std::string one; words >> one;) {
    if (one == word) {
      return true;
    }
  }
  return false;
}

// "rw,relatime,cpu,cpuacct" and the like.
bool HasOption(const std::string& options, std::string_view option) {
  std::istringstream all(options);
  for (std::string one; std::getline(all, one, ',');) {
    if (one == option) {
      return true;
    }
  }
  return false;
}

}  // namespace

Hierarchies Hierarchies::FromMounts(std::string_view mounts) {
  Hierarchies found;
  std::istringstream lines{std::string(mounts)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string device;
    std::string point;
    std::string type;
    std::string options;
    fields >> device >> point >> type >> options;
    if (type == "cgroup2" && found.unified.empty()) {
      found.unified = point;
    }
    for (const std::string_view controller : {"memory", "cpu", "cpuset", "pids", "devices"}) {
      if (type == "cgroup" && HasOption(options, controller)) {
        found.v1.emplace(controller, point);
      }
    }
  }
  found.unified_controls = !found.unified.empty() && !found.v1.contains("memory") &&
                           HasWord(FileText(found.unified + "/cgroup.controllers"), "memory");
  return found;
}

Result<Hierarchies> Hierarchies::OfThisMachine() {
  Hierarchies found = FromMounts(FileText("/proc/self/mounts"));
  if (!found.MountOf("memory").has_value()) {
    return Failed(
        "no control groups that limit memory are mounted (/proc/self/mounts); expected the "
        "controller memory of version 1 or 2, as every distribution mounts it");
  }
  return found;
}

std::optional<std::string> Hierarchies::MountOf(std::string_view controller) const {
  if (unified_controls) {
    return unified;
  }
  const auto mounted = v1.find(controller);
  return mounted == v1.end() ? std::nullopt : std::optional(mounted->second);
}

}  // namespace trainyard::cgroup
