// SPDX-License-Identifier: Apache-2.0
// What a job says of itself while it runs.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace trainyard {

struct Metric {
  std::string name;  // 1 to 64 of a-z, A-Z, 0-9, '_', '-', '.', '/'
  double value = 0;  // finite; in a unit that only job and policy know

  friend bool operator==(const Metric&, const Metric&) = default;
};

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

// How many names a job may use; what it reports under further ones is ignored.
inline constexpr std::size_t kMaxMetrics = 16;

}  // namespace trainyard
