// SPDX-License-Identifier: Apache-2.0
// What a machine has: its NVIDIA GPUs, and the address of a network interface.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainyard/status.h"

namespace trainyard::daemon {

struct Devices {
  int gpus = 0;
  std::string type;  // of the first
};

// By NVIDIA's management library, which is loaded only here. Errors: it is not there (no driver),
// does not answer, or finds no GPU.
[[nodiscard]] Result<Devices> FindDevices(const std::string& library = "libnvidia-ml.so.1");

// Faults of this machine's GPUs, as the driver tells them. For one thread at a time.
class GpuHealth {
 public:
  explicit GpuHealth(const std::string& library = "libnvidia-ml.so.1");
  ~GpuHealth();
  GpuHealth(const GpuHealth&) = delete;
  GpuHealth& operator=(const GpuHealth&) = delete;

  // Why the GPU cannot be relied on: it does not answer any more, or has had memory errors that
  // could not be corrected since this object was made. Empty: the driver knows of nothing.
  [[nodiscard]] std::string FaultOf(int gpu) const;

 private:
  class Driver;

  std::unique_ptr<Driver> driver_;
  std::vector<std::uint64_t> errors_;  // by GPU, when this object was made
};

// "8", "8:v100" or "auto", which asks FindDevices.
[[nodiscard]] Result<Devices> ParseDevices(const std::string& text);

// The first IPv4 address, else IPv6 address, of the interface. Error: there is none of that name
// with an address; it names those that are there.
[[nodiscard]] Result<std::string> AddressOf(const std::string& interface);

}  // namespace trainyard::daemon
