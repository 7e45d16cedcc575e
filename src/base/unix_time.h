// SPDX-License-Identifier: Apache-2.0
// The time of day by this machine's clock.
#pragma once

#include <chrono>

namespace trainyard::base {

// Seconds since 1970.
[[nodiscard]] inline double UnixNow() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace trainyard::base
