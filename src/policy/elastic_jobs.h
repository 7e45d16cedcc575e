// SPDX-License-Identifier: Apache-2.0
// What the policies for elastic jobs share.
#pragma once

#include <span>
#include <vector>

#include "trainyard/ids.h"
#include "trainyard/job.h"

namespace trainyard {

// The most GPUs that the published programs give a job: its batch size, at most 64.
[[nodiscard]] int PublishedCap(const JobSpec& job);

// The jobs of `live` in the order of `kept`; those that are not there follow, in their own order.
// O((kept + live) log live).
[[nodiscard]] std::vector<JobId> InKeptOrder(std::span<const JobId> kept,
                                             std::span<const JobId> live);

}  // namespace trainyard
