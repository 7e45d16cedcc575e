// SPDX-License-Identifier: Apache-2.0
#include "live/view/slurm_reason.h"

#include <optional>

#include "model/conditions.h"
#include "model/job_fields.h"
#include "supervisor/processes.h"

namespace trainyard::live {
namespace {

// `holder`: "ann (uid 1001, user)"; empty: the submission.
std::string_view WhyHeld(const JobEntry& entry) {
  const std::string& holder = entry.holder;
  const bool by_user =
      holder.empty() || holder.substr(0, holder.find(" (")) == entry.live.request->user();
  return by_user ? "JobHeldUser" : "JobHeldAdmin";
}

std::string_view WordOf(const model::Blocked& blocked) {
  switch (blocked.reason) {
    case model::WaitReason::kResources:
    case model::WaitReason::kGpus:
    case model::WaitReason::kLocality:
      return "Resources";
    case model::WaitReason::kBehindHead:
      return "Priority";
    case model::WaitReason::kNever:
      return "BadConstraints";
  }
  return "None";
}

std::string_view WhyDeferred(const engine::Deferral& deferral, TimePoint now) {
  return !deferral.never.empty()                   ? "DependencyNeverSatisfied"
         : deferral.after                          ? "Dependency"
         : deferral.begin && *deferral.begin > now ? "BeginTime"
         : deferral.at_once > 0                    ? "JobArrayTaskLimit"
                                                   : "None";
}

// In the order in which Reasons looks at what keeps the job.
std::string_view WhyWaiting(const ClusterView& view, TimePoint now, JobId id) {
  const JobEntry& entry = view.job(id);
  if (entry.held) {
    return WhyHeld(entry);
  }
  if (const std::optional<engine::Deferral> deferral = view.DeferralOf(id)) {
    return WhyDeferred(*deferral, now);
  }
  if (view.switches.paused.on) {
    return "PartitionDown";
  }
  if (!entry.failures.why_held.empty()) {
    return "BeginTime";  // it is held back after failures
  }
  const model::Blocked* const blocked = view.BlockedOf(id);
  const bool on_cpus = entry.record.spec->gpus == 0;
  return blocked != nullptr ? WordOf(*blocked) : on_cpus ? "Resources" : "Priority";
}

}  // namespace

std::string_view SlurmReasonOf(const ClusterView& view, TimePoint now, JobId id,
                               v1::JobState state) {
  const LiveJob& job = view.job(id).live;
  if (state == v1::WAITING) {
    return WhyWaiting(view, now, id);
  }
  if (state == v1::REJECTED) {
    return model::PartOf<JobTraits>(*view.job(id).record.spec).dependency.empty()
               ? "BadConstraints"
               : "DependencyNeverSatisfied";
  }
  if (state != v1::FAILED) {
    return "None";
  }
  return job.reason.starts_with(model::kOverTimeLimit)      ? "TimeLimit"
         : job.reason.starts_with(model::kLostNoRequeue)    ? "NodeDown"
         : job.reason.starts_with(supervisor::kOutOfMemory) ? "OutOfMemory"
         : job.exit_code != 0                               ? "NonZeroExitCode"
                                                            : "JobLaunchFailure";
}

}  // namespace trainyard::live
