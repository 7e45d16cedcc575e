// SPDX-License-Identifier: Apache-2.0
#include "policies/rest_of_job.h"

#include <algorithm>

namespace trainyard::policies {

std::optional<RestOfJob> RestOf(const JobView& job, const RestartCosts& costs) {
  if (job.grant == nullptr || !job.work_left || !(job.last_rate > 0)) {
    return std::nullopt;
  }
  const int gpus = job.grant->gpus;
  const double work = std::max(*job.work_left, 0.0) / job.last_rate;
  return RestOfJob{.work = work,
                   .stay = Seconds(job.debt) + work,
                   .cost = Seconds(std::max(costs.Of(*job.spec, Change::kResize, gpus),
                                            costs.Of(*job.spec, Change::kMigrate, gpus)))};
}

}  // namespace trainyard::policies
