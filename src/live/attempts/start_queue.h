// SPDX-License-Identifier: Apache-2.0
// Owns which jobs have an attempt whose parts are still to be started, and says when they may be.
// Pauses after failures are the failure book's.
#pragma once

#include <set>

#include "live/attempts/attempts.h"
#include "live/attempts/gpu_occupancy.h"
#include "live/nodes/live_nodes.h"
#include "model/touched.h"

namespace trainyard::live {

class StartQueue {
 public:
  // All must outlive it.
  StartQueue(const Attempts& attempts, const GpuOccupancy& occupancy, const LiveNodes& nodes,
             model::TouchedIds<JobId>& touched)
      : attempts_(attempts), occupancy_(occupancy), nodes_(nodes), touched_(touched) {}

  // The job's last attempt has parts that are not sent; or it has none any more.
  void Add(JobId job) {
    touched_.Add(job);
    jobs_.insert(job);
  }
  void Remove(JobId job) {
    touched_.Add(job);
    jobs_.erase(job);
  }
  [[nodiscard]] const std::set<JobId>& jobs() const { return jobs_; }
  // Whether the queued parts of the job's attempt may be sent: no earlier attempt of the job is
  // left, each node is there, and on the GPUs are only attempts with which this one shares them.
  [[nodiscard]] bool MayStart(JobId job) const;

 private:
  [[nodiscard]] bool MayEnter(const LiveAttempt& attempt, const Part& part) const;

  const Attempts& attempts_;
  const GpuOccupancy& occupancy_;
  const LiveNodes& nodes_;
  model::TouchedIds<JobId>& touched_;
  std::set<JobId> jobs_;
};

}  // namespace trainyard::live
