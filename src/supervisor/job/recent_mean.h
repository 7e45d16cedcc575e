// SPDX-License-Identifier: Apache-2.0
// The mean of the last values of a time that is measured again and again: each new value counts for
// a fifth.
#pragma once

#include <optional>

namespace trainyard::supervisor {

[[nodiscard]] constexpr double RecentMean(std::optional<double> mean, double last) {
  constexpr double kWeightOfLast = 0.2;
  return mean ? *mean + kWeightOfLast * (last - *mean) : last;
}

}  // namespace trainyard::supervisor
