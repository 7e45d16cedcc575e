// SPDX-License-Identifier: Apache-2.0
#include "engine/no_requeue.h"

#include <algorithm>
#include <string>

#include "model/conditions.h"
#include "model/job_fields.h"

namespace trainyard::engine {
namespace {

// Whether running jobs keep what they hold whatever waits, as under 'fifo'.
bool LeavesRunningAlone(const scheduler::Bundle& bundle) {
  const Walk walk = bundle.ordering_walk();
  return bundle.ordering != nullptr && bundle.grouping == nullptr && bundle.packer == nullptr &&
         !walk.preempt && walk.keep_running && !walk.count_first &&
         walk.misfit != Misfit::kEvictTail;
}

}  // namespace

bool Engine::NoRequeue::IsLeftAlone(const Configuration& configuration) {
  return configuration.selector != nullptr || (!configuration.bundle.traits().may.name_gpus &&
                                               !LeavesRunningAlone(configuration.bundle));
}

void Engine::NoRequeue::LeaveStartedAlone() {
  Parts& parts = *engine_.parts_;
  bool any = false;
  for (const JobId job : parts.grants.changed()) {
    const model::JobRecord& record = engine_.jobs_.At(job);
    if (model::IsNoRequeue(*record.spec) && record.grant.holds() &&
        !engine_.jobs_.IsFinishing(job) && engine_.nodes_.Finishes(job, parts.choices.classes())) {
      parts.scheduler.Note(job, scheduler::JobChange::kLeft, engine_.now_);
      engine_.jobs_.LeaveAlone(job);
      any = true;
    }
  }
  if (any) {
    parts.scheduler.Refill();
  }
}

bool Engine::NoRequeue::End(JobId id) {
  model::JobRecord& job = engine_.jobs_[id];
  if (!model::IsNoRequeue(*job.spec) || !job.started) {
    return false;
  }
  job.done = engine_.now_;
  job.logged = engine_.now_;
  engine_.Leave(id, model::JobPhase::kFailed, std::string(model::kLostNoRequeue));
  engine_.parts_->instants.AddFactOf(engine_.jobs_, id, engine_.now_);
  return true;
}

}  // namespace trainyard::engine
