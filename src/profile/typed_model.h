// SPDX-License-Identifier: Apache-2.0
// How fast jobs are on the GPU types of a cluster.
#pragma once

#include <memory>

#include "trainyard/cluster.h"
#include "trainyard/snapshot.h"

namespace trainyard {

// `plain` itself where the cluster has one type of speed 1. Otherwise as fast as it says with
// RateOn: a gang on GPUs of several types as on the slowest of them, for its workers wait for one
// another. Where the GPUs are not known yet, that is the slowest type that the job accepts and runs
// on, wherever it is, so that a plan by Rate is kept.
[[nodiscard]] std::unique_ptr<ExecutionModel> OnTypesOf(const Cluster& cluster,
                                                        std::unique_ptr<ExecutionModel> plain);

}  // namespace trainyard
