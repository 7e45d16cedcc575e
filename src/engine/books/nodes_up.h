// SPDX-License-Identifier: Apache-2.0
// Which nodes are up, that is, may be given to jobs; and the jobs that finish where no other job of
// theirs may begin.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "model/job_records.h"
#include "model/node_classes.h"
#include "trainyard/cluster.h"
#include "trainyard/state.h"

namespace trainyard::engine {

class NodesUp {
 public:
  // All are up. `jobs` must outlive it.
  NodesUp(const Cluster& cluster, const model::JobRecords& jobs);

  // Whether jobs that no policy may preempt (JobTraits::no_requeue) finish from their start on:
  // where they would otherwise be preempted, moved or resized, and the policy names no GPUs. Those
  // without GPUs always do.
  void LeaveNoRequeueAlone(bool leave) { leaves_no_requeue_alone_ = leave; }

  // By NodeId.
  [[nodiscard]] const std::vector<bool>& all() const { return up_; }
  [[nodiscard]] bool operator[](NodeId node) const { return up_[Index(node)]; }
  // Of all nodes that are up.
  [[nodiscard]] int gpus() const { return gpus_; }
  // How often nodes have come or gone.
  [[nodiscard]] std::uint64_t changes() const { return changes_; }

  void Set(NodeId node, bool up, const Cluster& cluster);
  // `after` takes the place of `before`: nodes that are new, or have other GPUs, are not up.
  void List(const Cluster& before, const Cluster& after);

  // The running jobs that lie on the node, ascending. O(running).
  [[nodiscard]] std::vector<JobId> JobsOn(NodeId node) const;
  // Whether the running job lies on some node that is not up, or not in its partition, or is left
  // alone from its start on: it finishes.
  [[nodiscard]] bool Finishes(JobId job, const model::NodeClasses& classes) const;
  // Those that do. O(running).
  [[nodiscard]] std::set<JobId> JobsFinishing(const model::NodeClasses& classes) const;
  // Whether some of the job's GPUs are on nodes that are up, or not.
  [[nodiscard]] bool LiesOn(JobId job, bool up) const;
  // Whether the job can be left alone where it is while the policy, which names no GPUs, goes on
  // with the others: it shares none.
  [[nodiscard]] bool MayFinish(JobId job) const;
  // The same once `node` is not up; with a policy that names GPUs, it holds none elsewhere, or
  // keeps them from the policy (scheduler::KeepNoRequeue).
  [[nodiscard]] bool MayFinishOn(NodeId node, JobId job, bool policy_names_gpus) const;
  // The GPUs that finishing jobs hold on nodes that are up, or on the others; those without a name
  // count as on nodes that are up. O(finishing).
  [[nodiscard]] int GpusFinishing(bool up) const;

  void Serialize(StateStream& state) { state(up_, gpus_, changes_); }

 private:
  const model::JobRecords& jobs_;
  std::vector<bool> up_;
  int gpus_;
  std::uint64_t changes_ = 0;
  bool leaves_no_requeue_alone_ = false;  // not saved
};

}  // namespace trainyard::engine
