// SPDX-License-Identifier: Apache-2.0
// Demands as shares of everything that the cluster has, for policies over several resources.
#pragma once

#include "trainyard/cluster.h"
#include "trainyard/snapshot.h"

namespace trainyard {

struct ResourceShares {
  double gpus = 0;
  double cpus = 0;    // 0 where the cluster states none
  double memory = 0;  // likewise

  [[nodiscard]] double dominant() const;
  [[nodiscard]] double sum() const { return gpus + cpus + memory; }
  ResourceShares& operator+=(const ResourceShares& other);
};

// The nodes that are down count: a share does not change with a failure.
class ClusterTotals {
 public:
  explicit ClusterTotals(const Cluster& cluster);
  // Of the job's GPUs and of what it prefers beside them (ExecutionModel::Preferred).
  [[nodiscard]] ResourceShares SharesOf(const JobSpec& job, const ExecutionModel& rates) const;

 private:
  double gpus_ = 0;
  double milli_cpus_ = 0;
  double memory_mib_ = 0;
};

}  // namespace trainyard
