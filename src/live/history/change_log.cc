// SPDX-License-Identifier: Apache-2.0
#include "live/history/change_log.h"

#include <fmt/format.h>

#include <utility>

#include "base/text.h"
#include "live/history/audit_trail.h"
#include "live/jobs/job_request.h"
#include "live/notes.h"
#include "model/conditions.h"
#include "service/principal.h"

namespace trainyard::live {
namespace {

std::string SwitchedText(const model::fact::Switched& now) {
  return fmt::format("{}, {}", now.paused ? "decisions are paused" : "decisions are made",
                     now.closed ? "no jobs are taken" : "jobs are taken");
}

// ": a new fan"; nothing without a reason.
std::string ReasonText(const std::string& reason) { return reason.empty() ? "" : ": " + reason; }

// Parts of the text of a note: "drained by ann (uid 0, admin): a new fan".
struct NoteText {
  std::string what;  // "drained: a new fan"
  std::string by;    // "ann (uid 0, admin)"
};
NoteText PartsOf(const std::string& text) {
  constexpr std::string_view kBy = " by ";
  const std::size_t at = text.find(kBy);
  if (at == std::string::npos) {
    return {.what = text, .by = {}};
  }
  const std::size_t begin = at + kBy.size();
  const std::size_t uid = text.find(" (uid ", begin);
  const std::size_t end =
      std::min(uid == std::string::npos ? text.find_first_of(",:", begin) : text.find(')', uid) + 1,
               text.size());
  return {.what = text.substr(0, at) + text.substr(end), .by = text.substr(begin, end - begin)};
}

// "12", "5-10004": ascending numbers.
void AddSpans(const std::vector<std::uint64_t>& numbers, v1::AuditEntry& entry) {
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) {
      ++last;
    }
    entry.add_jobs(i == last ? std::to_string(numbers[i])
                             : fmt::format("{}-{}", numbers[i], numbers[last]));
    i = last + 1;
  }
}

}  // namespace

void ChangeLog::NoteSubmit(const model::Event& event) {
  const JobId job = event.job();
  const v1::JobRequest& request = *state_.jobs[job].request;
  if (!request.launch().has_owner()) {
    return;
  }
  const std::size_t count = model::CountOf(*event.spec());
  Change change{
      .at = event.at,
      .by = service::Principal::OwnerOf(request).text_with_role(),
      .what = fmt::format("submitted: '{}', {}{}", request.name(), GpusText(request.gpus()),
                          count > 1 ? fmt::format(", {} tasks", count) : "")};
  change.line = fmt::format("job {}: submitted by {}{}", state_.numbers.Of(job), change.by,
                            change.what.substr(std::string_view("submitted").size()));
  for (std::size_t i = 0; i < count; ++i) {
    change.jobs.push_back(JobAt(Index(job) + i));
  }
  changes_.push_back(std::move(change));
}

void ChangeLog::NoteChange(const ChangeNote& note, TimePoint at) {
  Change change{.at = at};
  std::string name;
  if (note.of_node) {
    change.nodes.push_back(note.node);
    change.nodes.insert(change.nodes.end(), note.other_nodes.begin(), note.other_nodes.end());
    for (const NodeId node : change.nodes) {
      name += (name.empty() ? "node " : ", ") + state_.cluster.nodes[Index(node)].name;
    }
  } else {
    note.ForEachJob([&change](JobId job) { change.jobs.push_back(job); });
    name = "job " + state_.jobs.TextOf(note.job);
  }
  if (const std::size_t more = note.other_jobs.size(); more > 0) {
    name +=
        " and " + std::to_string(more) + " more, to " + state_.jobs.TextOf(note.other_jobs.back());
  }
  // Log and trail have times of their own.
  std::string text = note.text;
  const std::string time = " at " + base::UtcText(state_.options.UnixSeconds(at));
  if (const std::size_t place = text.find(time); place != std::string::npos) {
    text.erase(place, time.size());
  }
  change.line = name + ": " + text;
  NoteText parts = PartsOf(text);
  change.by = std::move(parts.by);
  change.what = std::move(parts.what);
  changes_.push_back(std::move(change));
}

bool ChangeLog::IsHeard() const { return state_.options.log || state_.options.audit != nullptr; }

// Submissions first: the journal has notes about the jobs before them.
void ChangeLog::Note(std::span<const model::Event> batch) {
  if (!IsHeard()) {
    return;
  }
  const auto is_submit = [](const model::Event& event) {
    return event.kind() == model::EventKind::kSubmitted ||
           event.kind() == model::EventKind::kArraySubmitted;
  };
  for (const model::Event& event : batch) {
    if (is_submit(event)) {
      NoteSubmit(event);
    }
  }
  for (const model::Event& event : batch) {
    NoteOther(event);
  }
}

void ChangeLog::NoteOther(const model::Event& event) {
  if (const auto* const now = std::get_if<model::fact::Switched>(&event.fact)) {
    changes_.push_back({.at = event.at,
                        .line = SwitchedText(*now) + (now->by.empty() ? "" : "; by " + now->by) +
                                ReasonText(now->reason),
                        .by = now->by,
                        .what = SwitchedText(*now) + ReasonText(now->reason)});
  } else if (const auto* const upgraded = std::get_if<model::fact::Upgraded>(&event.fact)) {
    const std::string what =
        fmt::format("from here on Trainyard {} decides; what Trainyard {} has decided stays",
                    upgraded->to, upgraded->from);
    changes_.push_back({.at = event.at, .line = what, .by = "the controller", .what = what});
  } else if (const std::optional<ChangeNote> note = NoteAs<ChangeNote>(event)) {
    NoteChange(*note, event.at);
  }
}

void ChangeLog::NoteConfigured(const engine::Configuration& next, TimePoint at) {
  if (!IsHeard()) {
    return;
  }
  const bool is_start = next.author.empty();  // which says so itself
  const std::string what = fmt::format("configuration {}", next.number);
  changes_.push_back(
      {.at = at,
       .line = is_start ? "" : fmt::format("{}, by {}: {}", what, next.author, next.changes),
       .by = is_start ? "the controller's options" : next.author,
       .what = what + ReasonText(next.changes)});
}

void ChangeLog::NoteLost(NodeId node) {
  const Duration silent = state_.now - state_.nodes[node].heard;
  changes_.push_back(
      {.line = fmt::format(
           "node {}: lost: nothing has been heard of its agent for {:.0f} s, and its lease is over",
           state_.cluster.nodes[Index(node)].name, Seconds(silent) / state_.options.time_scale)});
}

void ChangeLog::NoteSilent(NodeId node) {
  changes_.push_back({.line = "node " + state_.cluster.nodes[Index(node)].name +
                              ": silent: it gets no other jobs until its agent is heard again"});
}

void ChangeLog::NoteUp(NodeId node) {
  changes_.push_back({.line = "node " + state_.cluster.nodes[Index(node)].name + ": up"});
}

// "priority 0, now 5": what an update at that time has made of the job.
std::string ChangeLog::UpdateText(JobId job, TimePoint at) const {
  constexpr std::string_view kUpdated = "updated ";
  std::string text;
  if (const History::Events events = state_.history.Of(job)) {
    for (const JobEvent& event : *events) {
      if (event.at == at && event.what.starts_with(kUpdated)) {
        text += fmt::format("{}{} {}, now {}", text.empty() ? ": " : "; ",
                            event.what.substr(kUpdated.size()),
                            event.before.empty() ? "none" : event.before,
                            event.after.empty() ? "none" : event.after);
      }
    }
  }
  return text;
}

void ChangeLog::Put(const Change& change) const {
  v1::AuditEntry entry;
  entry.set_entry(entry_);
  entry.set_time(base::UtcText(state_.options.UnixSeconds(change.at)));
  entry.set_by(change.by);
  entry.set_what(change.what == "updated" && !change.jobs.empty()
                     ? change.what + UpdateText(change.jobs.front(), change.at)
                     : change.what);
  std::vector<std::uint64_t> numbers;
  for (const JobId job : change.jobs) {
    numbers.push_back(state_.numbers.Of(job));
  }
  AddSpans(numbers, entry);
  for (const NodeId node : change.nodes) {
    entry.add_nodes(state_.cluster.nodes[Index(node)].name);
  }
  state_.options.audit->Put(entry);
}

void ChangeLog::Tell(bool again) {
  ++entry_;
  for (const Change& change : std::exchange(changes_, {})) {
    if (state_.options.log && !again && !change.line.empty()) {
      state_.options.log(change.line);
    }
    if (state_.options.audit != nullptr && !change.what.empty()) {
      Put(change);
    }
  }
}

}  // namespace trainyard::live
