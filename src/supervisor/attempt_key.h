// SPDX-License-Identifier: Apache-2.0
// An attempt as controllers and agents name it.
#pragma once

#include <cstdint>
#include <utility>

#include "trainyard/live.pb.h"

namespace trainyard {

// The number of the job, and that of its attempt.
using AttemptKey = std::pair<std::uint64_t, std::uint32_t>;
[[nodiscard]] inline AttemptKey KeyOf(const v1::AttemptId& id) { return {id.job(), id.attempt()}; }

}  // namespace trainyard
