// SPDX-License-Identifier: Apache-2.0
// Owns which attempts may have processes on which GPUs, and which jobs hold GPUs that they may not
// use yet.
//
// Strays are among the attempts that may have processes: attempts that agents report and the
// controller does not know (any more), as those of jobs that have ended. A stray has to go, and
// keeps its GPUs busy until it has gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "model/touched.h"
#include "supervisor/processes.h"
#include "trainyard/state.h"

namespace trainyard::live {

class GpuOccupancy {
 public:
  // `touched` must outlive it.
  GpuOccupancy(std::size_t nodes, model::Touched& touched) : touched_(touched), holders_(nodes) {}

  // There may be more nodes than before.
  void ListNodes(std::size_t nodes) { holders_.resize(nodes); }
  // Processes of the attempt may be on these GPUs of the node, or are there no more.
  void Enter(NodeId node, supervisor::AttemptKey key, std::uint64_t gpus) {
    Edit(node)[key] = gpus;
  }
  void Leave(NodeId node, supervisor::AttemptKey key) { Edit(node).erase(key); }
  // The node runs nothing, or its agent is about to say what it runs.
  void Clear(NodeId node) { Edit(node).clear(); }
  // The attempts that may have processes on the node, and on which GPUs.
  using Holders = std::map<supervisor::AttemptKey, std::uint64_t>;
  [[nodiscard]] const Holders& HoldersOf(NodeId node) const { return holders_[Index(node)]; }
  // The attempts that may have processes on any of these GPUs, by key.
  [[nodiscard]] std::vector<supervisor::AttemptKey> On(NodeId node, std::uint64_t gpus) const;

  // The job holds GPUs and may not run on them (Grant::running); or it may, or has lost them.
  void Hold(JobId job) {
    touched_.jobs.Add(job);
    holding_.insert(job);
  }
  void Unhold(JobId job) {
    touched_.jobs.Add(job);
    holding_.erase(job);
  }
  [[nodiscard]] const std::set<JobId>& holding() const { return holding_; }

  void Serialize(StateStream& state) { state(holding_); }

 private:
  [[nodiscard]] Holders& Edit(NodeId node) {
    touched_.nodes.Add(node);
    return holders_[Index(node)];
  }

  model::Touched& touched_;
  std::vector<Holders> holders_;  // by node
  std::set<JobId> holding_;
};

}  // namespace trainyard::live
