// SPDX-License-Identifier: Apache-2.0
// Which node could hold a gang if the worst-ranked jobs on it were evicted. For orders in which the
// running jobs keep their order among themselves (one slope), a question costs O(log nodes) plus
// the nodes that have changed since the last one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/indexed_heap.h"
#include "scheduler/order_index.h"
#include "scheduler/packing.h"

namespace trainyard {

class EvictionIndex {
 public:
  using Rank = OrderIndex::Rank;

  explicit EvictionIndex(const Cluster& cluster) : nodes_(cluster.nodes.size()) {}

  // A running job. Ranks are compared with one another only, so any common shift may be left out.
  void Put(JobId job, const Grant& grant, const Rank& rank);
  void Remove(JobId job, const Grant& grant);  // REQUIRES: it was put with this grant
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
    IndexedHeap nodes;  // those with a threshold, the worst-ranked threshold on top
    HeapPositions positions;
  };

  void MarkChanged(NodeId node);
  void Refresh(const Packing& packing);
  void Refresh(Size& size, const DemandClass& of, std::size_t node, const Packing& packing) const;
  Size& SizeOf(const DemandClass& of, const Packing& packing);

  std::vector<Node> nodes_;
  std::vector<std::size_t> changed_;
  std::map<DemandClass, Size> sizes_;  // those asked for so far
};

}  // namespace trainyard
