// SPDX-License-Identifier: Apache-2.0
// What policies that name GPUs, or share them, may not do to jobs that keep theirs to the end
// (JobTraits::no_requeue). From other policies such jobs are hidden once they run
// (JobRecords::finishing).
#pragma once

#include <cstddef>
#include <vector>

#include "model/job_records.h"
#include "trainyard/plan.h"

namespace trainyard::scheduler {

// Makes of the demands of a policy those that leave each running job of the kind as it is: its own
// demand comes first and is what it holds, and demands for its GPUs are left out, unless
// `finds_others` says that others are found for them. Such a job never shares GPUs: it leaves its
// group, and waits where another demand names the same GPUs. Returns whether any such job runs.
// O(demands + running + nodes).
[[nodiscard]] bool KeepNoRequeue(std::vector<Demand>& demands, const model::JobRecords& jobs,
                                 std::size_t nodes, bool finds_others);

}  // namespace trainyard::scheduler
