// SPDX-License-Identifier: Apache-2.0
// What a job says of itself while it runs, such as its loss: a name and a number, by the job
// protocol of a live cluster (docs/job-protocol.md). Policies read the latest values in
// JobView::reported. A report alone is no cause to decide; it is seen at the next decision.
#pragma once

#include <cstddef>
#include <string>

namespace trainyard {

struct Metric {
  std::string name;  // 1 to 64 of a-z, A-Z, 0-9, '_', '-', '.', '/'
  double value = 0;  // finite; in a unit that only job and policy know

  friend bool operator==(const Metric&, const Metric&) = default;
};

// How many different names a job may use in its life. Values under further names are ignored; those
// under known names go on replacing each other.
inline constexpr std::size_t kMaxMetrics = 32;

}  // namespace trainyard
