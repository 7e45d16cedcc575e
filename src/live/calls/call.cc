// SPDX-License-Identifier: Apache-2.0
#include "live/calls/call.h"

#include <cmath>
#include <utility>

#include "base/text.h"
#include "live/jobs/job_request.h"

namespace trainyard::live {

void CallContext::Add(model::Fact fact) { add_({.at = state_.now, .fact = std::move(fact)}); }

void CallContext::NoteChange(const Call& call, std::string_view what, ChangeNote note) {
  if (call.principal.caller()) {
    note.text = std::string(what) + " by " + call.principal.text_with_role() + note.text;
    add_(FactOf(std::move(note), state_.now));
  }
}

Result<JobId> CallContext::Find(const Call& call, std::uint64_t number,
                                service::Access access) const {
  const std::optional<JobId> job = state_.numbers.Find(number, known_jobs_);
  if (!job) {
    return NotFound("there is no job " + std::to_string(number));
  }
  if (!call.principal.May(access, *state_.jobs[*job].request)) {
    Error error = NotYours(call.principal, access);
    error.message = base::ReplaceAll(error.message, "{}", state_.jobs.TextOf(*job));
    return error;
  }
  return *job;
}

std::string CallContext::StateAndReasonOf(JobId job) const {
  const v1::JobState state = statuses().StateOf(job);
  const std::string reason = statuses().ReasonOf(job, state);
  return "it is " + StateText(state) + (reason.empty() ? "" : " (" + reason + ")");
}

Error NotYours(const service::Principal& principal, service::Access access) {
  using service::Access;
  return PermissionDenied(
      principal.text() + " may not " +
      (access == Access::kRead    ? "read the logs of"
       : access == Access::kEnter ? "attach to"
                                  : "change") +
      " job {}, which is another user's; expected its owner" +
      (access == Access::kChange ? ", an operator or an admin" : " or an admin"));
}

bool IsClockError(const LiveOptions& options, double apart_s) {
  constexpr Duration kClocks = std::chrono::seconds(5);
  return std::abs(apart_s) <= Seconds(options.Scaled(kClocks));
}

}  // namespace trainyard::live
