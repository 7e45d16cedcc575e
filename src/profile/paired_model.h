// SPDX-License-Identifier: Apache-2.0
// How fast jobs are that share their GPUs with one other job, by a table of such pairs.
#pragma once

#include <memory>

#include "profile/throughput_table.h"
#include "trainyard/cluster.h"
#include "trainyard/snapshot.h"

namespace trainyard::profile {

// As `others` says, but for two jobs on the same GPUs (CoRunners::collocated), both of them bound
// to rows of `table`: as fast as its pairs say on the slowest GPU type of the grant, on its own
// numbers of GPUs; 0 where the table has no such pair, and beside more than one job. `table` must
// outlive the model.
[[nodiscard]] std::unique_ptr<ExecutionModel> WithPairs(const ThroughputTable& table,
                                                        const Cluster& cluster,
                                                        std::unique_ptr<ExecutionModel> others);

}  // namespace trainyard::profile
