// SPDX-License-Identifier: Apache-2.0
// What a machine has: its NVIDIA GPUs, and the address of a network interface.
#pragma once

#include <string>

#include "trainyard/status.h"

namespace trainyard {

struct Devices {
  int gpus = 0;
  std::string type;  // of the first
};

// By NVIDIA's management library, which is loaded only here. Errors: it is not there (no driver),
// does not answer, or finds no GPU.
[[nodiscard]] Result<Devices> FindDevices(const std::string& library = "libnvidia-ml.so.1");

// "8", "8:v100" or "auto", which asks FindDevices.
[[nodiscard]] Result<Devices> ParseDevices(const std::string& text);

// The first IPv4 address, else IPv6 address, of the interface. Error: there is none of that name
// with an address; it names those that are there.
[[nodiscard]] Result<std::string> AddressOf(const std::string& interface);

}  // namespace trainyard
