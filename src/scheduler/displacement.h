// SPDX-License-Identifier: Apache-2.0
// Room for a waiting job on GPUs of running jobs that rank below it: who has to go.
#pragma once

#include <optional>
#include <vector>

#include "scheduler/eviction_index.h"
#include "scheduler/order_index.h"
#include "scheduler/packing.h"
#include "trainyard/snapshot.h"

namespace trainyard {

class Displacement {
 public:
  // All must outlive it.
  Displacement(const JobTable& jobs, const OrderIndex& index) : jobs_(jobs), index_(index) {}

  struct Outcome {
    std::optional<Grant> grant;  // in the packing; none: there is no room
    // They are out of the packing and wait in their own places of the order.
    std::vector<JobId> displaced;
  };

  // On one node where that can hold the gang, otherwise in the cluster; nothing changes where there
  // is no room. `evictions`: knows all running jobs; null: they are gone through from the worst,
  // O(running jobs that rank below).
  [[nodiscard]] Outcome MakeRoom(const JobView& job, TimePoint now, EvictionIndex* evictions,
                                 Packing& packing);
  // Running jobs that rank below `job` lose their GPUs, the worst first, until it fits. What has
  // been taken is taken, even if it does not help (Misfit::kEvictTail).
  [[nodiscard]] Outcome EvictTail(const JobView& job, TimePoint now, Packing& packing) const;

 private:
  using Passed = std::vector<const OrderIndex::Running*>;

  [[nodiscard]] Outcome FromWorst(const JobView& job, TimePoint now, Packing& packing);
  [[nodiscard]] std::optional<Grant> TakeFrom(const std::vector<JobId>& victims, const JobView& job,
                                              Packing& packing) const;
  [[nodiscard]] std::vector<JobId> InTheWay(const std::vector<JobId>& victims,
                                            Packing& packing) const;
  [[nodiscard]] std::optional<NodeId> Gain(const OrderIndex::Running& job, const DemandClass& of,
                                           const Packing& packing);
  void ForgetGain(const Passed& jobs);
  [[nodiscard]] int UsableGpus(const OrderIndex::Running& job, const DemandClass& of,
                               const Packing& packing) const;
  [[nodiscard]] std::vector<JobId> OnNode(const Passed& jobs, NodeId node) const;

  const JobTable& jobs_;
  const OrderIndex& index_;
  std::vector<int> gain_;  // by node: GPUs that evicting the jobs gone through would free
};

}  // namespace trainyard
