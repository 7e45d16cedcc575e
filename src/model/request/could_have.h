// SPDX-License-Identifier: Apache-2.0
// Whether a job could ever have another number of GPUs than it asks for, or GPUs of some nodes
// alone, with all that it asks for beside them: for policies that set either.
#pragma once

#include <vector>

#include "model/node_classes.h"
#include "trainyard/cluster.h"
#include "trainyard/job.h"

namespace trainyard::model {

// By node: whether it is of one of these classes.
[[nodiscard]] std::vector<bool> NodesOf(const Cluster& cluster, const NodeClasses& classes,
                                        NodeClassSet set);

// On nodes of these classes, of those that its types and its partition leave, if nothing else ran
// and all were up. O(nodes); O(1) for a job that asks for nothing.
[[nodiscard]] bool CouldHave(const Cluster& cluster, const NodeClasses& classes, const JobSpec& job,
                             int gpus, NodeClassSet among = ~NodeClassSet{0});

}  // namespace trainyard::model
