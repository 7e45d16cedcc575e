// SPDX-License-Identifier: Apache-2.0
#include "model/job_record.h"

#include "base/check.h"
#include "model/job_fields.h"

namespace trainyard::model {
namespace {

bool MayBecome(JobPhase from, JobPhase to) {
  switch (from) {
    case JobPhase::kUnknown:
      return to == JobPhase::kArrived;
    case JobPhase::kArrived:
      return to == JobPhase::kWaiting || to == JobPhase::kRejected || to == JobPhase::kCancelled;
    case JobPhase::kWaiting:
      // A planned end may come for a job that holds nothing (PublishedRules::ends_without_gpus);
      // and a live job may end while its preemption is under way.
      return to == JobPhase::kRunning || to == JobPhase::kRejected || to == JobPhase::kCompleted ||
             to == JobPhase::kCancelled || to == JobPhase::kFailed;
    case JobPhase::kRunning:
      return to == JobPhase::kWaiting || to == JobPhase::kCompleted || to == JobPhase::kCancelled ||
             to == JobPhase::kFailed;
    case JobPhase::kCompleted:
    case JobPhase::kRejected:
    case JobPhase::kCancelled:
    case JobPhase::kFailed:
      return false;
  }
  return false;
}

}  // namespace

std::string_view Name(JobPhase phase) {
  switch (phase) {
    case JobPhase::kUnknown:
      return "unknown";
    case JobPhase::kArrived:
      return "arrived";
    case JobPhase::kWaiting:
      return "waiting";
    case JobPhase::kRunning:
      return "running";
    case JobPhase::kCompleted:
      return "completed";
    case JobPhase::kRejected:
      return "rejected";
    case JobPhase::kCancelled:
      return "cancelled";
    case JobPhase::kFailed:
      return "failed";
  }
  return "";
}

void CheckedPhase::To(JobPhase next) {
  CHECK(MayBecome(phase_, next));
  phase_ = next;
}

void JobRecord::Serialize(StateStream& state) {
  state(spec, phase, started, started_late, arrival, grant, progress, productive_before_attempt,
        fetch, start_cost, restart_cost, stay, forecast, total_work, full_rate, preferred,
        last_rate, idle_since, first_start, done, logged, reported, preemptions, migrations,
        resizes);
}

}  // namespace trainyard::model
