// SPDX-License-Identifier: Apache-2.0
// Room for a waiting job on GPUs of running jobs that rank below it: which of them are evicted.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/indexed_heap.h"
#include "scheduler/packing.h"
#include "scheduler/queue/order_index.h"
#include "trainyard/snapshot.h"

namespace trainyard::scheduler {

// Which node could hold a gang if the worst-ranked jobs on it were evicted. For orders in which the
// running jobs keep their order among themselves (one slope), a question costs O(log nodes) plus
// the nodes that have changed since the last one.
class EvictionIndex {
 public:
  using Rank = OrderIndex::Rank;

  explicit EvictionIndex(const Cluster& cluster) : nodes_(cluster.nodes.size()) {}

  // A running job. Ranks are compared with one another only, so any common shift may be left out.
  void Put(JobId job, const Grant& grant, const Rank& rank);
  void Remove(JobId job);  // REQUIRES: it was put
  // With which it was put. REQUIRES: it was put.
  [[nodiscard]] const Grant& grant(JobId job) const { return grants_[Index(job)]; }
  // What is free there has changed.
  void Touch(const Grant& grant);

  struct Choice {
    NodeId node{};
    std::vector<JobId> victims;  // the worst first
  };
  // The node where enough GPUs for the class are free once jobs ranked below `limit` are evicted;
  // of several the one whose best-ranked victim ranks worst, then the lowest. `packing` says what
  // is free.
  [[nodiscard]] std::optional<Choice> Find(const DemandClass& of, const Rank& limit,
                                           const Packing& packing);

 private:
  struct Resident {
    JobId job{};
    int gpus = 0;  // on this node
    Rank rank{};
  };
  struct Node {
    std::vector<Resident> residents;  // the worst first
    bool changed = false;             // since the thresholds were computed
  };
  // For gangs of one class: by node, the rank of the best-ranked job that must go. No value: there
  // is no room even without all of them.
  struct Size {
    std::vector<std::optional<Rank>> threshold;
    base::IndexedHeap nodes;  // those with a threshold, the worst-ranked threshold on top
    base::HeapPositions positions;
  };

  void MarkChanged(NodeId node);
  void Refresh(const Packing& packing);
  void Refresh(Size& size, const DemandClass& of, std::size_t node, const Packing& packing) const;
  Size& SizeOf(const DemandClass& of, const Packing& packing);

  std::vector<Grant> grants_;  // by JobId
  std::vector<Node> nodes_;
  std::vector<std::size_t> changed_;
  std::map<DemandClass, Size> sizes_;  // those asked for so far
};

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
  void ClearGain(const Passed& jobs);
  [[nodiscard]] int UsableGpus(const OrderIndex::Running& job, const DemandClass& of,
                               const Packing& packing) const;
  [[nodiscard]] std::vector<JobId> OnNode(const Passed& jobs, NodeId node) const;

  const JobTable& jobs_;
  const OrderIndex& index_;
  std::vector<int> gain_;  // by node: GPUs that evicting the jobs gone through would free
};

}  // namespace trainyard::scheduler
