// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>

#include "trainyard/time.h"

namespace trainyard::base {

// None: never.
[[nodiscard]] inline std::optional<TimePoint> Earlier(std::optional<TimePoint> a,
                                                      std::optional<TimePoint> b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

}  // namespace trainyard::base
