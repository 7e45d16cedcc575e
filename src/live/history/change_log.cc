// SPDX-License-Identifier: Apache-2.0
#include "live/history/change_log.h"

#include <fmt/format.h>

#include <utility>

#include "base/text.h"
#include "live/jobs/job_request.h"
#include "live/notes.h"
#include "model/conditions.h"
#include "service/principal.h"

namespace trainyard::live {
namespace {

std::string SwitchedText(const model::fact::Switched& now) {
  return fmt::format("{}, {}{}{}{}{}", now.paused ? "decisions are paused" : "decisions are made",
                     now.closed ? "no jobs are taken" : "jobs are taken",
                     now.by.empty() ? "" : "; by ", now.by, now.reason.empty() ? "" : ": ",
                     now.reason);
}

std::string UpgradedText(const model::fact::Upgraded& now) {
  return fmt::format("from here on Trainyard {} decides; what Trainyard {} has decided stays",
                     now.to, now.from);
}

}  // namespace

std::string ChangeLog::SubmitText(JobId job, std::size_t count) const {
  const v1::JobRequest& request = *state_.jobs[job].request;
  const service::Principal owner = service::Principal::OwnerOf(request);
  return "job " + std::to_string(state_.numbers.Of(job)) + ": submitted by " +
         owner.text_with_role() + ": '" + request.name() + "', " + GpusText(request.gpus()) +
         (count > 1 ? ", " + std::to_string(count) + " tasks" : "");
}

std::string ChangeLog::ChangeText(const ChangeNote& note, TimePoint at_time) const {
  std::string name = note.of_node ? "node " + state_.cluster.nodes[Index(note.node)].name
                                  : "job " + state_.jobs.TextOf(note.job);
  for (const NodeId node : note.other_nodes) {
    name += ", " + state_.cluster.nodes[Index(node)].name;
  }
  if (const std::size_t more = note.other_jobs.size(); more > 0) {
    name +=
        " and " + std::to_string(more) + " more, to " + state_.jobs.TextOf(note.other_jobs.back());
  }
  // The log has times of its own.
  std::string text = note.text;
  const std::string time = " at " + base::UtcText(state_.options.UnixSeconds(at_time));
  if (const std::size_t at = text.find(time); at != std::string::npos) {
    text.erase(at, time.size());
  }
  return name + ": " + text;
}

void ChangeLog::Note(const model::Event& event) {
  if (!state_.options.log) {
    return;
  }
  if (event.kind() == model::EventKind::kSubmitted ||
      event.kind() == model::EventKind::kArraySubmitted) {
    if (state_.jobs[event.job()].request->launch().has_owner()) {
      lines_.push_back(SubmitText(event.job(), model::CountOf(*event.spec())));
    }
  } else if (const auto* const now = std::get_if<model::fact::Switched>(&event.fact)) {
    lines_.push_back(SwitchedText(*now));
  } else if (const auto* const upgraded = std::get_if<model::fact::Upgraded>(&event.fact)) {
    lines_.push_back(UpgradedText(*upgraded));
  } else if (event.kind() == model::EventKind::kConfigured) {
    const engine::Configuration& next = *state_.configuration;
    if (!next.author.empty()) {  // of a start it is said at the start
      lines_.push_back(
          fmt::format("configuration {}, by {}: {}", next.number, next.author, next.changes));
    }
  } else if (const std::optional<ChangeNote> note = NoteAs<ChangeNote>(event)) {
    lines_.push_back(ChangeText(*note, event.at));
  }
}

void ChangeLog::NoteLost(NodeId node) {
  const Duration silent = state_.now - state_.nodes[node].heard;
  lines_.push_back(fmt::format(
      "node {}: lost: nothing has been heard of its agent for {:.0f} s, and its lease is over",
      state_.cluster.nodes[Index(node)].name, Seconds(silent) / state_.options.time_scale));
}

void ChangeLog::NoteUp(NodeId node) {
  lines_.push_back("node " + state_.cluster.nodes[Index(node)].name + ": up");
}

void ChangeLog::Tell() {
  for (const std::string& line : std::exchange(lines_, {})) {
    if (state_.options.log) {
      state_.options.log(line);
    }
  }
}

}  // namespace trainyard::live
