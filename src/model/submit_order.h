// SPDX-License-Identifier: Apache-2.0
// The order in which a trace's jobs are submitted.
#pragma once

#include <cstdint>
#include <vector>

#include "trainyard/job.h"

namespace trainyard {

// The rows of `jobs` by submit time, then as they stand.
[[nodiscard]] std::vector<std::uint32_t> SubmitOrder(const std::vector<JobSpec>& jobs);

}  // namespace trainyard
