// SPDX-License-Identifier: Apache-2.0
// Under which names jobs may report values.
#pragma once

#include <cstddef>
#include <string_view>

namespace trainyard {

// 1 to 64 of a-z, A-Z, 0-9, '_', '-', '.', '/'.
[[nodiscard]] constexpr bool IsMetricName(std::string_view name) {
  constexpr std::size_t kLongest = 64;
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!letter && c != '_' && c != '-' && c != '.' && c != '/') {
      return false;
    }
  }
  return !name.empty() && name.size() <= kLongest;
}

}  // namespace trainyard
