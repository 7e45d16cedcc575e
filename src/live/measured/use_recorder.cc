// SPDX-License-Identifier: Apache-2.0
#include "live/measured/use_recorder.h"

namespace trainyard::live {

void UseRecorder::Hear(JobId job, const LiveAttempt& attempt, Part& part,
                       const v1::AttemptReport& report) {
  if (!report.has_use() || part.state == PartState::kExited) {
    return;
  }
  part.use = UseOf(report);
  if (!part.use_told) {
    part.use_told = state_.now;
  }
  if (report.state() == v1::AttemptReport::EXITED ||
      state_.now - *part.use_told >= state_.options.Scaled(kPause)) {
    part.use_told = state_.now;
    add_(FactOf(UseNoteOf(job, attempt.number, part), state_.now));
  }
}

void UseRecorder::NoteMissing(JobId job, const LiveAttempt& attempt, const Part& part) {
  if (part.state != PartState::kExited && !(part.use == ProcessUse{})) {
    add_(FactOf(UseNoteOf(job, attempt.number, part), state_.now));
  }
}

void UseRecorder::NoteNodeGone(NodeId node) {
  for (const JobId job : state_.attempts.present()) {
    for (const LiveAttempt& attempt : state_.attempts[job].list) {
      for (const Part& part : attempt.parts) {
        if (part.node == node) {
          NoteMissing(job, attempt, part);
        }
      }
    }
  }
}

void UseRecorder::HearStray(NodeId node, const v1::AttemptReport& report) {
  const std::optional<JobId> job = state_.numbers.Find(report.id().job(), state_.jobs.size());
  if (!job || state_.jobs[*job].ending || !report.has_use()) {
    return;
  }
  const UseNote note{
      .job = *job, .node = node, .attempt = report.id().attempt(), .use = UseOf(report)};
  if (CopyOf(state_.usage.UseOf(*job)).Count(note) > 0) {  // else it has been told before
    add_(FactOf(note, state_.now));
  }
}

}  // namespace trainyard::live
