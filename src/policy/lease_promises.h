// SPDX-License-Identifier: Apache-2.0
// What policy chronus has promised. For tests.
#pragma once

#include <optional>
#include <vector>

#include "trainyard/component.h"

namespace trainyard {

struct LeasePromise {
  JobId job{};
  std::optional<TimePoint> deadline;  // none: not accepted
};

// Of the jobs that were live at the last decision. REQUIRES: a memory of `chronus`, plan=events.
[[nodiscard]] std::vector<LeasePromise> PromisesOf(const Memory& memory);

}  // namespace trainyard
