// SPDX-License-Identifier: Apache-2.0
#include "live/history/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"
#include "live/jobs/job_request.h"
#include "live/jobs/updatable_fields.h"
#include "live/notes.h"

namespace trainyard::live {
namespace {

constexpr std::string_view kBy = " by ";

std::string WhereText(const Grant& grant, const Cluster& cluster) {
  std::string text;
  for (const Slice& slice : grant.slices) {
    text += (text.empty() ? "" : " ") + DevicesText(slice, cluster);
  }
  return text;
}

}  // namespace

History::Events History::Of(JobId job) const {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) {
    return nullptr;
  }
  found->second.given_out = true;
  return found->second.events;
}

std::vector<JobEvent>& History::Edit(JobId job) {
  OfJob& known = At(job);
  if (known.given_out) {
    known.given_out = false;
    known.events = std::make_shared<std::vector<JobEvent>>(*known.events);
  }
  return *known.events;
}

History::OfJob& History::At(JobId job) {
  touched_.Add(job);
  OfJob& known = jobs_[job];
  if (jobs_.size() > kMostJobs) {
    const bool some_ended = !ended_.empty() && ended_.front() != job;
    const JobId oldest = some_ended                    ? ended_.front()
                         : jobs_.begin()->first != job ? jobs_.begin()->first
                                                       : std::next(jobs_.begin())->first;
    touched_.Add(oldest);
    std::erase(ended_, oldest);
    jobs_.erase(oldest);
  }
  return known;
}

void History::Put(JobId job, JobEvent event) {
  std::vector<JobEvent>& events = Edit(job);
  if (events.size() == kMostOfJob) {
    events.erase(events.begin());
  }
  events.push_back(std::move(event));
}

void History::NoteEnd(JobId job) {
  if (jobs_.contains(job) && std::find(ended_.begin(), ended_.end(), job) == ended_.end()) {
    ended_.push_back(job);
  }
}

// Who has made this change: a note in the journal comes before the fact, and gives way to it.
std::string History::TakeAuthor(JobId job, TimePoint at, const std::string& of) {
  if (!jobs_.contains(job)) {
    return {};
  }
  std::vector<JobEvent>& events = Edit(job);
  for (auto event = events.begin(); event != events.end(); ++event) {
    if (event->at == at && event->what.starts_with(of) && event->after.empty() &&
        event->before.empty() && !event->by.empty()) {
      std::string by = event->by;
      events.erase(event);
      return by;
    }
  }
  return {};
}

void History::Note(const model::Event& event, const LiveJobs& jobs, const Cluster& cluster) {
  const JobId job = event.job();
  switch (event.kind()) {
    case model::EventKind::kNoted:
      return NoteText(event, jobs, cluster);
    case model::EventKind::kUpdated:
      return NoteUpdate(event, jobs);
    case model::EventKind::kResized:
      if (jobs[job].request->gpus() == event.As<model::fact::Resized>().gpus) {
        return;  // its update has said so
      }
      return Put(job, {.at = event.at,
                       .what = "resized",
                       .by = TakeAuthor(job, event.at, "resized"),
                       .before = GpusText(jobs[job].request->gpus()),
                       .after = GpusText(event.As<model::fact::Resized>().gpus)});
    case model::EventKind::kHeld: {
      const std::string what = event.As<model::fact::Held>().held ? "held" : "released";
      return Put(job, {.at = event.at, .what = what, .by = TakeAuthor(job, event.at, what)});
    }
    case model::EventKind::kRequeued:
      return Put(job,
                 {.at = event.at,
                  .what = event.As<model::fact::Requeued>().held ? "requeued and held" : "requeued",
                  .by = TakeAuthor(job, event.at, "requeued")});
    case model::EventKind::kCancelled:
      Put(job, {.at = event.at, .what = "cancelled", .by = TakeAuthor(job, event.at, "cancelled")});
      return NoteEnd(job);
    case model::EventKind::kEnded:
      Put(job, {.at = event.at, .what = "completed"});
      return NoteEnd(job);
    case model::EventKind::kFailed:
      Put(job, {.at = event.at,
                .what = "failed",
                .after = "exit code " + std::to_string(event.As<model::fact::Failed>().exit_code)});
      return NoteEnd(job);
    case model::EventKind::kGpusLost: {
      const int exit_code = event.As<model::fact::GpusLost>().exit_code;
      return Put(job, {.at = event.at,
                       .what = "lost its workers",
                       .after = exit_code == 0 ? std::string()
                                               : "exit code " + std::to_string(exit_code)});
    }
    case model::EventKind::kNodeDown:
      return NoteNode(event.node(), event.at, "the node was lost", cluster);
    case model::EventKind::kNodeDrained:
      return NoteNode(event.node(), event.at, "the node's drain", cluster);
    case model::EventKind::kOverrun:
      return Put(job, {.at = event.at, .what = "has overrun what it has stated"});
    default:
      return;
  }
}

void History::NoteConfigured(const engine::Configuration& former, const engine::Configuration& next,
                             TimePoint at) {
  for (std::size_t i = 0; i < former.cluster.nodes.size(); ++i) {
    if (!engine::HasSameGpus(former.cluster.nodes[i], next.cluster.nodes[i])) {
      NoteNode(NodeAt(i), at,
               fmt::format("configuration {}{}{}", next.number, next.author.empty() ? "" : " of ",
                           next.author),
               former.cluster);
    }
  }
}

// What somebody has said of the node goes before what follows from it.
void History::NoteNode(NodeId node, TimePoint at, const std::string& cause,
                       const Cluster& cluster) {
  if (at != caused_at_) {
    causes_.clear();
    caused_at_ = at;
  }
  if (Index(node) < cluster.nodes.size()) {
    causes_.try_emplace(cluster.nodes[Index(node)].name, cause);
  }
}

// `held`: as WhereText has it.
std::string History::CauseOf(const std::string& held, TimePoint at) const {
  for (const auto& [node, cause] : causes_) {
    if (at == caused_at_ && (" " + held).find(" " + node + ":") != std::string::npos) {
      return cause;
    }
  }
  return {};
}

// Who has changed it, or how an attempt has failed.
void History::NoteText(const model::Event& event, const LiveJobs& jobs, const Cluster& cluster) {
  if (const std::optional<ChangeNote> note = NoteAs<ChangeNote>(event)) {
    const std::size_t by = note->text.rfind(kBy);
    if (note->of_node) {
      NoteNode(note->node, event.at, note->text, cluster);
      for (const NodeId node : note->other_nodes) {
        NoteNode(node, event.at, note->text, cluster);
      }
    }
    note->ForEachJob([&](JobId job) {
      if (jobs.has(job)) {
        Put(job, {.at = event.at,
                  .what = note->text.substr(0, by),
                  .by = by == std::string::npos ? "" : note->text.substr(by + kBy.size())});
      }
    });
    return;
  }
  const std::optional<FailureNote> note = NoteAs<FailureNote>(event);
  if (note && jobs.has(note->job) && Index(note->node) < cluster.nodes.size() &&
      (note->kind == FailureNote::Kind::kNodeFailed ||
       note->kind == FailureNote::Kind::kJobFailed)) {
    Put(note->job, {.at = event.at,
                    .what = "attempt failed on " + cluster.nodes[Index(note->node)].name,
                    .after = note->text});
  }
}

// An event for each field that is another one.
void History::NoteUpdate(const model::Event& event, const LiveJobs& jobs) {
  const std::string by = TakeAuthor(event.job(), event.at, "updated");
  v1::JobRequest after;
  if (!after.ParseFromString(event.As<model::fact::Updated>().spec->launch)) {
    return;
  }
  const v1::JobRequest& before = *jobs[event.job()].request;
  for (const UpdatableField& field : UpdatableFields()) {
    if (std::string was = field.text(before), is = field.text(after); was != is) {
      Put(event.job(), {.at = event.at,
                        .what = "updated " + std::string(field.name),
                        .by = by,
                        .before = std::move(was),
                        .after = std::move(is)});
    }
  }
}

void History::Note(const model::Action& action, TimePoint at, const Cluster& cluster) {
  switch (action.kind) {
    case model::ActionKind::kReject:
      Put(action.job, {.at = at, .what = "rejected", .after = action.reason});
      return NoteEnd(action.job);
    case model::ActionKind::kRelease:
      if (!action.reason.empty()) {
        Put(action.job, {.at = at, .what = "ended", .after = action.reason});
        NoteEnd(action.job);
      }
      return;
    case model::ActionKind::kPreempt: {
      OfJob& job = At(action.job);
      std::string held = std::exchange(job.holds, {});
      const bool told =
          !job.events->empty() && job.events->back().at == at;  // by what has caused it
      if (!told) {
        std::string cause = CauseOf(held, at);
        Put(action.job,
            {.at = at, .what = "preempted", .by = std::move(cause), .before = std::move(held)});
      }
      return;
    }
    case model::ActionKind::kLaunch:
    case model::ActionKind::kResize:
    case model::ActionKind::kMigrate: {
      std::string where = WhereText(action.grant, cluster);
      std::string held = std::exchange(At(action.job).holds, where);
      return Put(action.job,
                 {.at = at,
                  .what = action.kind == model::ActionKind::kLaunch   ? "granted GPUs"
                          : action.kind == model::ActionKind::kResize ? "resized by the policy"
                                                                      : "moved",
                  .before = std::move(held),
                  .after = std::move(where)});
    }
    default:
      return;
  }
}

}  // namespace trainyard::live
