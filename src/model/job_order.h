// SPDX-License-Identifier: Apache-2.0
// Orders of jobs: of a trace by submission, and of live jobs as they were last time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainyard/ids.h"
#include "trainyard/job.h"

namespace trainyard::model {

// The rows of `jobs` by submit time, then as they stand.
[[nodiscard]] std::vector<std::uint32_t> SubmitOrder(const std::vector<JobSpec>& jobs);

// The jobs of `live` in the order of `kept`; those that are not there follow, in their own order.
// O((kept + live) log live).
[[nodiscard]] std::vector<JobId> InKeptOrder(std::span<const JobId> kept,
                                             std::span<const JobId> live);

}  // namespace trainyard::model
