// SPDX-License-Identifier: Apache-2.0
// Where the kernel's control groups are mounted on this machine: version 1 (one hierarchy for each
// controller), version 2 (one for all), or both beside one another.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "trainyard/status.h"

namespace trainyard::cgroup {

// The controllers that limit jobs.
inline constexpr std::array<std::string_view, 4> kControllers{"memory", "cpu", "cpuset", "pids"};

struct Hierarchies {
  std::map<std::string, std::string, std::less<>> v1;  // mount point of each controller
  std::string unified;                                 // of version 2; empty: not mounted
  bool unified_controls = false;  // the limits are version 2's; otherwise version 1's

  // From the text of /proc/self/mounts. Reads the list of controllers where version 2 is mounted.
  [[nodiscard]] static Hierarchies FromMounts(std::string_view mounts);
  // Those of this machine. Error: nothing is mounted that could limit memory.
  [[nodiscard]] static Result<Hierarchies> OfThisMachine();
  // Where the controller's groups lie. None: there is no such controller.
  [[nodiscard]] std::optional<std::string> MountOf(std::string_view controller) const;
};

}  // namespace trainyard::cgroup
