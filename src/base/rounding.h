// SPDX-License-Identifier: Apache-2.0
// Times on a coarser grid than the microsecond.
#pragma once

#include "trainyard/time.h"

namespace trainyard::base {

// The first of anchor + k * length (k >= 1 where `at` > anchor, else anchor) not before `at`.
// REQUIRES: length > 0.
[[nodiscard]] TimePoint NextMultiple(TimePoint anchor, Duration length, TimePoint at);

// The first whole second not before `seconds`.
[[nodiscard]] Duration CeilToSecond(double seconds);

}  // namespace trainyard::base
