// SPDX-License-Identifier: Apache-2.0
#include "base/rounding.h"

#include <cmath>

#include "base/check.h"

namespace trainyard::base {

TimePoint NextMultiple(TimePoint anchor, Duration length, TimePoint at) {
  CHECK(length.count() > 0);
  if (at <= anchor) {
    return anchor;
  }
  const std::int64_t lengths = (at - anchor + length - Duration{1}) / length;
  return anchor + lengths * length;
}

Duration CeilToSecond(double seconds) {
  // The product is a whole number already, whatever its size.
  return Duration{static_cast<std::int64_t>(std::ceil(seconds) * 1e6)};
}

}  // namespace trainyard::base
