// SPDX-License-Identifier: Apache-2.0
// A filter of device nodes for the processes of a version 2 control group: a BPF program that is
// made here and judged by the kernel's verifier, without a compiler or a library.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainyard/status.h"

namespace trainyard::cgroup {

struct Device {
  bool is_block = false;
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  friend bool operator==(const Device&, const Device&) = default;
};

// The device of a node, such as /dev/nvidia0. Error: it is not there, or no device.
[[nodiscard]] Result<Device> DeviceAt(const std::string& path);

// The program's instructions: it forbids every access to these devices, and allows all others.
[[nodiscard]] std::vector<std::uint64_t> FilterProgram(const std::vector<Device>& forbidden);

// Attaches the filter to the group with this folder for as long as the group is there, beside any
// that it or a group above it has. Needs the rights of root.
[[nodiscard]] Status AttachFilter(const std::string& group_folder,
                                  const std::vector<Device>& forbidden);

}  // namespace trainyard::cgroup
