// SPDX-License-Identifier: Apache-2.0
#include "live/notices/notices.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "live/jobs/job_request.h"
#include "live/notes.h"

namespace trainyard::live {

std::string MistakeOfNotify(const v1::LaunchSpec& launch) {
  constexpr std::array<std::string_view, 4> kEvents{kNotifyBegin, kNotifyEnd, kNotifyFail,
                                                    kNotifyPreempt};
  for (const std::string& event : launch.notify()) {
    if (std::find(kEvents.begin(), kEvents.end(), event) == kEvents.end()) {
      return "--notify has '" + event + "'; expected begin, end, fail and preempt, with commas";
    }
  }
  return {};
}

void Notices::Note(const model::Event& event) {
  switch (event.kind()) {
    case model::EventKind::kEnded:
    case model::EventKind::kFailed:
    case model::EventKind::kCancelled:
      ended_.insert(event.job());
      return;
    case model::EventKind::kResized:
      by_users_.insert(event.job());
      return;
    case model::EventKind::kNoted:
      if (const std::optional<BeginNote> note = NoteAs<BeginNote>(event);
          note && state_.jobs.has(note->job) && has_begun_.insert(note->job).second) {
        begun_.insert(note->job);
      }
      return;
    default:
      return;
  }
}

void Notices::Note(const model::Action& action) {
  if (action.kind == model::ActionKind::kReject || action.kind == model::ActionKind::kRelease) {
    ended_.insert(action.job);
  } else if (action.kind == model::ActionKind::kPreempt) {
    preempted_.insert(action.job);
  }
}

void Notices::Tell() {
  const std::set<JobId> begun = std::exchange(begun_, {});
  const std::set<JobId> preempted = std::exchange(preempted_, {});
  const std::set<JobId> by_users = std::exchange(by_users_, {});
  const std::set<JobId> ended = std::exchange(ended_, {});
  for (const JobId job : ended) {
    has_begun_.erase(job);
  }
  if (!state_.options.notice) {
    return;
  }
  for (const JobId job : begun) {
    Tell(job, kNotifyBegin);
  }
  for (const JobId job : preempted) {
    if (has_begun_.contains(job) && !by_users.contains(job) &&
        !HasEnded(views_.Now().StateOf(job))) {
      Tell(job, kNotifyPreempt);
    }
  }
  for (const JobId job : ended) {
    TellEnd(job);
  }
}

// Once, though both may be asked for.
void Notices::TellEnd(JobId job) {
  const v1::JobState state = views_.Now().StateOf(job);
  if (!HasEnded(state)) {
    return;
  }
  const bool failed = state == v1::FAILED || state == v1::REJECTED;
  Tell(job, failed && Wants(job, kNotifyFail) ? kNotifyFail : kNotifyEnd);
}

bool Notices::Wants(JobId job, const char* event) const {
  const auto& wanted = state_.jobs[job].request->launch().notify();
  return std::find(wanted.begin(), wanted.end(), event) != wanted.end();
}

void Notices::Tell(JobId job, const char* event) {
  if (!Wants(job, event)) {
    return;
  }
  const v1::JobRequest& request = *state_.jobs[job].request;
  const bool begins = event == std::string_view(kNotifyBegin);  // it may have ended since
  const v1::JobState state = begins ? v1::RUNNING : views_.Now().StateOf(job);
  state_.options.notice({.job = state_.numbers.Of(job),
                         .name = request.name(),
                         .user = request.user(),
                         .event = event,
                         .at = state_.now,
                         .time = state_.options.UnixSeconds(state_.now),
                         .state = StateText(state),
                         .reason = begins ? std::string() : views_.Now().ReasonOf(job, state)});
}

}  // namespace trainyard::live
