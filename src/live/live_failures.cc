// SPDX-License-Identifier: Apache-2.0
// Whose fault an attempt's end is, and what follows from that.
#include <algorithm>

#include "live/live_world.h"

namespace trainyard {

void LiveWorld::JudgeFailures() {
  for (const JobId id : std::vector<JobId>(to_judge_.begin(), to_judge_.end())) {
    LiveJob& job = jobs_[Index(id)];
    if (job.ending || job.attempts.empty() || job.attempts.back().stopping ||
        !job.attempts.back().failed) {
      to_judge_.erase(id);
    } else if (MayJudge(job.attempts.back())) {
      Judge(id, job.attempts.back());
      DropGone(id);
    }
  }
}

// The workers of a gang fail when those of another node have gone. So a failure is the job's own
// only if all other nodes have been heard of since and had none before.
bool LiveWorld::MayJudge(const Attempt& attempt) const {
  std::vector<PartFailure> failures;
  for (const Part& part : attempt.parts) {
    failures.push_back(part.failure);
  }
  if (std::none_of(failures.begin(), failures.end(),
                   [](const PartFailure& failure) { return failure.has_failed(); }) ||
      OwnerOf(failures[FirstFailed(failures)]) != FailureOwner::kJob) {
    return true;
  }
  return std::all_of(attempt.parts.begin(), attempt.parts.end(), [&](const Part& part) {
    const Node& node = nodes_[Index(part.node)];
    return part.state == PartState::kExited || part.failure.has_failed() ||
           (node.connection && node.heard > *attempt.failed);
  });
}

void LiveWorld::Judge(JobId id, Attempt& attempt) {
  to_judge_.erase(id);
  std::vector<PartFailure> failures;
  for (const Part& part : attempt.parts) {
    failures.push_back(part.failure);
  }
  if (std::none_of(failures.begin(), failures.end(),
                   [](const PartFailure& failure) { return failure.has_failed(); })) {
    return Requeue(id, attempt, 0);
  }
  const Part& part = attempt.parts[FirstFailed(failures)];
  switch (OwnerOf(part.failure)) {
    case FailureOwner::kNobody:
      return Requeue(id, attempt, 0);
    case FailureOwner::kJob:
      return BlameJob(id, attempt, part);
    case FailureOwner::kDoubtful:
      return failures_.NodesAgree(id, part.node, part.failure.cause, EligibleNodes(id))
                 ? BlameJob(id, attempt, part)
                 : BlameNode(id, attempt, part);
    case FailureOwner::kNode:
      return BlameNode(id, attempt, part);
  }
}

void LiveWorld::BlameNode(JobId id, Attempt& attempt, const Part& part) {
  const bool vanished = part.failure.cause == v1::AttemptReport::SUPERVISOR_LOST;
  if (vanished && renewed_ == part.node) {  // with the former agent, or with the machine
    NoteAgentLost(part.node);
    return Requeue(id, attempt, 0);
  }
  if (vanished && failures_.VanishesTooOften(id, part.node, NodesFor(id))) {
    jobs_[Index(id)].reason =
        "its supervisor has vanished in " + std::to_string(failures_.rules().most_vanished) +
        " attempts in a row; a job must leave the process that starts it alone";
    attempt.stopping = true;
    return Add(
        {.kind = EventKind::kFailed, .at = now_, .job = id, .exit_code = part.failure.exit_code});
  }
  NoteFault({.kind = FailureNote::Kind::kNodeFailed,
             .job = id,
             .node = part.node,
             .cause = part.failure.cause,
             .key = ReasonKey(part.failure),
             .text = Describe(part.failure),
             .agent = nodes_[Index(part.node)].hello.start(),
             .avoids = engine_.keeps_away()});
  Requeue(id, attempt, 0);
}

void LiveWorld::BlameJob(JobId id, Attempt& attempt, const Part& part) {
  const bool soon = !attempt.has_run || now_ - attempt.ran_from < failures_.rules().soon;
  NoteFault({.kind = FailureNote::Kind::kJobFailed,
             .job = id,
             .node = part.node,
             .cause = part.failure.cause,
             .text = Describe(part.failure),
             .soon = soon});
  Fail(id, attempt, part.failure.exit_code);
}

void LiveWorld::NoteFault(const FailureNote& note) { Add(note.ToEvent(now_)); }

// Once for all that the agent has lost.
void LiveWorld::NoteAgentLost(NodeId node) {
  const FailureNote note{.kind = FailureNote::Kind::kAgentLost,
                         .node = node,
                         .key = "its agent is lost",
                         .text = "its agent was lost, and what it ran"};
  const Event event = note.ToEvent(now_);
  const bool has_any = std::any_of(present_.begin(), present_.end(), [&](JobId job) {
    const std::vector<Part>& parts = jobs_[Index(job)].attempts.back().parts;
    return std::any_of(parts.begin(), parts.end(),
                       [node](const Part& part) { return part.node == node; });
  });
  const bool is_noted =
      std::any_of(batch_.events.begin(), batch_.events.end(),
                  [&event](const Event& other) { return other.note == event.note; });
  if (has_any && !is_noted) {
    Add(event);
  }
}

// When it will have run well, where that matters.
std::optional<TimePoint> LiveWorld::WellFrom(JobId id, const Attempt& attempt) const {
  if (!attempt.has_run || attempt.stopping || attempt.failed) {
    return std::nullopt;
  }
  std::vector<NodeId> nodes;
  for (const Part& part : attempt.parts) {
    nodes.push_back(part.node);
  }
  return failures_.WantsToKnow(id, nodes, attempt.opened)
             ? std::optional(attempt.ran_from + failures_.rules().soon)
             : std::nullopt;
}

void LiveWorld::NoteRunsWell(JobId id, const Attempt& attempt) {
  FailureNote note{.kind = FailureNote::Kind::kRanWell, .job = id};
  for (const Part& part : attempt.parts) {
    note.nodes.push_back(part.node);
  }
  if (failures_.WantsToKnow(id, note.nodes, attempt.opened)) {
    NoteFault(note);
  }
}

void LiveWorld::NoteWhatRunsWell() {
  if (failures_.quiet()) {
    return;
  }
  for (const JobId id : present_) {
    const Attempt& attempt = jobs_[Index(id)].attempts.back();
    if (const std::optional<TimePoint> at = WellFrom(id, attempt);
        at && *at <= now_ && !jobs_[Index(id)].ending) {
      NoteRunsWell(id, attempt);
    }
  }
}

bool LiveWorld::Accepts(JobId id, NodeId node) const {
  const std::shared_ptr<const v1::JobRequest>& request = jobs_[Index(id)].request;
  const auto& types = request->gpu_types();
  return types.empty() || !states_gpu_types_ ||
         std::find(types.begin(), types.end(), cluster_.nodes[Index(node)].gpu_type) != types.end();
}

// Nodes that can say whether the job can run at all.
int LiveWorld::NodesFor(JobId id) const {
  int nodes = 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    nodes += Accepts(id, NodeAt(i)) ? 1 : 0;
  }
  return nodes;
}

// Without those that are drained.
int LiveWorld::EligibleNodes(JobId id) const {
  int nodes = 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    nodes += !nodes_[i].drained && Accepts(id, NodeAt(i)) ? 1 : 0;
  }
  return nodes;
}

// With which it can run, if the policy may choose.
int LiveWorld::LeastGpus(JobId id) const {
  const v1::JobRequest& request = *jobs_[Index(id)].request;
  return options_.needs.elastic ? std::max(1, request.min_gpus()) : request.gpus();
}

// What follows from the facts, as facts. In the order in which a replay will see them.
void LiveWorld::Conclude() {
  SortFacts();
  for (const Event& event : batch_.events) {
    failures_.Take(event);
  }
  const FailureBook::Surroundings around{
      .available = [this](NodeId node) { return nodes_[Index(node)].available; },
      .drained = [this](NodeId node) { return nodes_[Index(node)].drained; },
      .accepts = [this](JobId job, NodeId node) { return Accepts(job, node); },
      .least_gpus = [this](JobId job) { return LeastGpus(job); }};
  std::vector<Event> conclusions = failures_.Conclude(now_, around);
  while (!conclusions.empty()) {
    for (Event& event : conclusions) {
      Add(std::move(event));
    }
    conclusions = failures_.Conclude(now_, around);
  }
  SortFacts();
}

}  // namespace trainyard
