// SPDX-License-Identifier: Apache-2.0
// Jobs that no policy may preempt, and that do not wait again (JobTraits::no_requeue): once they
// run they finish, as jobs on a cordoned node do, so that no policy sees them. A policy that names
// GPUs has to see who holds them; there the scheduler keeps their grants
// (scheduler::KeepNoRequeue).
#pragma once

#include "engine/configuration.h"
#include "engine/engine.h"

namespace trainyard::engine {

class Engine::NoRequeue {
 public:
  explicit NoRequeue(Engine& engine) : engine_(engine) {}

  // Whether they finish from their start on under the configuration. Not where running jobs are
  // left alone anyway, so that others can wait for what these hold.
  [[nodiscard]] static bool IsLeftAlone(const Configuration& configuration);
  // Those that the decision has started are the policy's no longer. O(jobs changed).
  void LeaveStartedAlone();
  // Ends the job, which is about to lose what it holds, as failed. False: it may wait again.
  [[nodiscard]] bool End(JobId job);

 private:
  Engine& engine_;
};

}  // namespace trainyard::engine
