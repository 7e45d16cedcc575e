// SPDX-License-Identifier: Apache-2.0
// What processes have used of a node beside GPUs.
#pragma once

#include <cstdint>

#include "trainyard/live.pb.h"
#include "trainyard/state.h"

namespace trainyard::live {

struct ProcessUse {
  std::int64_t cpu_micros = 0;   // CPU time in microseconds
  std::int64_t peak_memory = 0;  // bytes: the most at a time

  void Serialize(StateStream& state) { state(cpu_micros, peak_memory); }
  friend bool operator==(const ProcessUse&, const ProcessUse&) = default;
};

[[nodiscard]] inline ProcessUse UseOf(const v1::AttemptReport& report) {
  return {.cpu_micros = report.use().cpu_micros(), .peak_memory = report.use().peak_memory()};
}

}  // namespace trainyard::live
