// SPDX-License-Identifier: Apache-2.0
// Owns what lies between a grant and the start of its attempt: which attempts may have processes on
// which GPUs, which have still to be started, and which jobs hold GPUs that they may not use yet.
// Pauses after failures are the failure book's.
//
// Strays are among the attempts that may have processes: attempts that agents report and the
// controller does not know (any more), as those of jobs that have ended. A stray has to go, and
// keeps its GPUs busy until it has gone.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "live/attempts.h"
#include "live/leases.h"
#include "model/touched.h"
#include "trainyard/state.h"

namespace trainyard::live {

class Gates {
 public:
  // All must outlive it.
  Gates(const Attempts& attempts, const Leases& leases, model::Touched& touched)
      : attempts_(attempts), leases_(leases), touched_(touched), holders_(leases.size()) {}

  // There may be more nodes than before.
  void ListNodes() { holders_.resize(leases_.size()); }
  // Processes of the attempt may be on these GPUs of the node, or are there no more.
  void Enter(NodeId node, supervisor::AttemptKey key, std::uint64_t gpus) {
    Edit(node)[key] = gpus;
  }
  void Leave(NodeId node, supervisor::AttemptKey key) { Edit(node).erase(key); }
  // The node runs nothing, or its agent is about to say what it runs.
  void Clear(NodeId node) { Edit(node).clear(); }
  // The attempts that may have processes on the node, and on which GPUs.
  [[nodiscard]] const std::map<supervisor::AttemptKey, std::uint64_t>& HoldersOf(
      NodeId node) const {
    return holders_[Index(node)];
  }
  // The attempts that may have processes on any of these GPUs, by key.
  [[nodiscard]] std::vector<supervisor::AttemptKey> On(NodeId node, std::uint64_t gpus) const;

  // The job's last attempt has parts that are not sent; or it has none any more.
  void Queue(JobId job) {
    touched_.jobs.Add(job);
    queued_.insert(job);
  }
  void Unqueue(JobId job) {
    touched_.jobs.Add(job);
    queued_.erase(job);
  }
  [[nodiscard]] const std::set<JobId>& queued() const { return queued_; }
  // Whether the queued parts of the job's attempt may be sent: no earlier attempt of the job is
  // left, each node is there, and on the GPUs are only attempts with which this one shares them.
  [[nodiscard]] bool IsOpen(JobId job) const;

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
  using Holders = std::map<supervisor::AttemptKey, std::uint64_t>;

  [[nodiscard]] Holders& Edit(NodeId node) {
    touched_.nodes.Add(node);
    return holders_[Index(node)];
  }
  [[nodiscard]] bool MayEnter(const LiveAttempt& attempt, const Part& part) const;

  const Attempts& attempts_;
  const Leases& leases_;
  model::Touched& touched_;
  std::vector<Holders> holders_;  // by node
  std::set<JobId> queued_;
  std::set<JobId> holding_;
};

}  // namespace trainyard::live
