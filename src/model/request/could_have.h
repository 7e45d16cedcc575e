// SPDX-License-Identifier: Apache-2.0
// Whether a job could ever have another number of GPUs than it asks for, or GPUs of some nodes
// alone, with all that it asks for beside them: for policies that set either.
#pragma once

#include <vector>

#include "model/node_classes.h"
#include "trainyard/cluster.h"
#include "trainyard/job.h"

namespace trainyard::model {

// On these nodes (by node), of those that its types and its partition leave, if nothing else ran
// and all were up. O(nodes); O(1) for a job that asks for nothing.
[[nodiscard]] bool CouldHave(const Cluster& cluster, const NodeClasses& classes, const JobSpec& job,
                             int gpus, const std::vector<bool>* nodes = nullptr);

}  // namespace trainyard::model
