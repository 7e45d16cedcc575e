// SPDX-License-Identifier: Apache-2.0
// What a job says of itself while it runs.
#pragma once

#include <cstddef>
#include <string>

namespace trainyard {

struct Metric {
  std::string name;  // 1 to 64 of a-z, A-Z, 0-9, '_', '-', '.', '/'
  double value = 0;  // finite; in a unit that only job and policy know

  friend bool operator==(const Metric&, const Metric&) = default;
};

// How many names a job may use; what it reports under further ones is ignored.
inline constexpr std::size_t kMaxMetrics = 16;

}  // namespace trainyard
