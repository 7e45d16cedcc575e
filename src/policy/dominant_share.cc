// SPDX-License-Identifier: Apache-2.0
#include "policy/dominant_share.h"

#include <algorithm>

namespace trainyard {

double ResourceShares::dominant() const { return std::max({gpus, cpus, memory}); }

ResourceShares& ResourceShares::operator+=(const ResourceShares& other) {
  gpus += other.gpus;
  cpus += other.cpus;
  memory += other.memory;
  return *this;
}

ClusterTotals::ClusterTotals(const Cluster& cluster) {
  for (const NodeSpec& node : cluster.nodes) {
    gpus_ += node.gpus;
    milli_cpus_ += static_cast<double>(node.capacity.milli_cpus);
    memory_mib_ += static_cast<double>(node.capacity.memory_mib);
  }
}

ResourceShares ClusterTotals::SharesOf(const JobSpec& job, const ExecutionModel& rates) const {
  const Resources wants = rates.Preferred(job);
  const auto share = [](double part, double whole) { return whole > 0 ? part / whole : 0; };
  return {.gpus = share(job.gpus, gpus_),
          .cpus = share(static_cast<double>(wants.milli_cpus), milli_cpus_),
          .memory = share(static_cast<double>(wants.memory_mib), memory_mib_)};
}

}  // namespace trainyard
