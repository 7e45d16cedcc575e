// SPDX-License-Identifier: Apache-2.0
// Rates for policies that set the numbers of GPUs, beside what jobs ask for.
#pragma once

#include <memory>

#include "trainyard/cluster.h"
#include "trainyard/snapshot.h"

namespace trainyard::profile {

// As `plain`, but a job has no rate on numbers of GPUs, other than its own, that it could never
// have with all that it asks for beside them (model::CouldHave): nobody plans what cannot be
// placed. `cluster` must outlive it. Rate and RateOn cost O(nodes) more for jobs with requests.
[[nodiscard]] std::unique_ptr<ExecutionModel> WithRequests(const Cluster& cluster,
                                                           std::unique_ptr<ExecutionModel> plain);

}  // namespace trainyard::profile
