// SPDX-License-Identifier: Apache-2.0
#include "live/failures/failure_judge.h"

#include <algorithm>
#include <utility>

#include "base/earlier.h"
#include "base/text.h"
#include "engine/engine.h"
#include "live/notes.h"

namespace trainyard::live {
namespace {

std::vector<PartFailure> FailuresOf(const LiveAttempt& attempt) {
  std::vector<PartFailure> failures;
  for (const Part& part : attempt.parts) {
    failures.push_back(part.failure);
  }
  return failures;
}

bool NoneFailed(const std::vector<PartFailure>& failures) {
  return std::none_of(failures.begin(), failures.end(),
                      [](const PartFailure& failure) { return failure.has_failed(); });
}

// By what has been said so far.
bool LooksLikeTheJobs(const LiveAttempt& attempt) {
  const std::vector<PartFailure> failures = FailuresOf(attempt);
  return !NoneFailed(failures) && OwnerOf(failures[FirstFailed(failures)]) == FailureOwner::kJob;
}

}  // namespace

// What looks like the job's own is judged when all that has arrived has been taken: another node
// may have said more.
void FailureJudge::Take(JobId id, LiveAttempt& attempt) {
  attempt.failed = attempt.failed.value_or(state_.now);
  unjudged_.insert(id);
  if (!LooksLikeTheJobs(attempt)) {
    Judge(id, attempt);
  }
}

std::vector<JobId> FailureJudge::JudgeDue() {
  std::vector<JobId> judged;
  for (const JobId id : std::vector<JobId>(unjudged_.begin(), unjudged_.end())) {
    std::vector<LiveAttempt>& list = state_.attempts.Of(id);
    if (state_.jobs[id].ending || list.empty() || list.back().stopping || !list.back().failed) {
      unjudged_.erase(id);
    } else if (MayJudge(list.back())) {
      Judge(id, list.back());
      judged.push_back(id);
    }
  }
  return judged;
}

// The workers of a gang fail when those of another node have gone. So a failure is the job's own
// only if all other nodes have been heard of since and had none before. What is heard sooner than a
// heartbeat later may have been on its way.
bool FailureJudge::MayJudge(const LiveAttempt& attempt) const {
  if (!LooksLikeTheJobs(attempt)) {
    return true;
  }
  const TimePoint since = *attempt.failed + state_.options.Scaled(state_.options.heartbeat);
  return std::all_of(attempt.parts.begin(), attempt.parts.end(), [&](const Part& part) {
    const LiveNode& node = state_.nodes[part.node];
    return part.state == PartState::kExited || part.failure.has_failed() ||
           (node.connection && node.heard >= since);
  });
}

void FailureJudge::Judge(JobId id, LiveAttempt& attempt) {
  unjudged_.erase(id);
  const std::vector<PartFailure> failures = FailuresOf(attempt);
  if (NoneFailed(failures)) {
    return Requeue(id, attempt, 0);
  }
  const Part& part = attempt.parts[FirstFailed(failures)];
  switch (OwnerOf(part.failure)) {
    case FailureOwner::kNobody:
      return Requeue(id, attempt, 0);
    case FailureOwner::kJob:
      return BlameJob(id, attempt, part);
    case FailureOwner::kDoubtful:
      return state_.failures.NodesAgree(id, part.node, part.failure.cause, NodesFor(id, false))
                 ? BlameJob(id, attempt, part)
                 : BlameNode(id, attempt, part);
    case FailureOwner::kNode:
      return BlameNode(id, attempt, part);
  }
}

void FailureJudge::BlameNode(JobId id, LiveAttempt& attempt, const Part& part) {
  const bool vanished = part.failure.cause == v1::AttemptReport::SUPERVISOR_LOST;
  if (vanished && renewed_ == part.node) {  // with the former agent, or with the machine
    NoteAgentLost(part.node);
    return Requeue(id, attempt, 0);
  }
  const auto user_of = [this](JobId job) {
    return state_.jobs[job].request->launch().owner().user();
  };
  const int times =
      vanished ? state_.failures.VanishesTooOften({.job = id, .node = part.node, .at = state_.now},
                                                  NodesFor(id, true), user_of)
               : 0;
  if (times > 0) {
    state_.jobs[id].reason =
        "its supervisor has vanished in " + std::to_string(times) +
        " attempts in a row; a job must leave the process that starts it alone";
    return Fail(id, attempt, part.failure.exit_code);
  }
  const FailureNote note{.kind = FailureNote::Kind::kNodeFailed,
                         .job = id,
                         .node = part.node,
                         .cause = part.failure.cause,
                         .key = vanished ? VanishedKey(user_of(id)) : ReasonKey(part.failure),
                         .text = Describe(part.failure),
                         .agent = state_.nodes[part.node].hello.start(),
                         .avoids = engine_.keeps_away()};
  if (state_.failures.IsOfOneJob(note, NodesFor(id, false))) {
    return BlameJob(id, attempt, part);
  }
  Note(note);
  Requeue(id, attempt, 0);
}

// The job may try again, or it has failed.
void FailureJudge::BlameJob(JobId id, LiveAttempt& attempt, const Part& part) {
  const bool soon =
      !attempt.has_run || state_.now - attempt.ran_from < state_.failures.rules().soon;
  Note({.kind = FailureNote::Kind::kJobFailed,
        .job = id,
        .node = part.node,
        .cause = part.failure.cause,
        .text = Describe(part.failure),
        .soon = soon});
  const int exit_code = part.failure.exit_code;
  const LiveJob& job = state_.jobs[id];
  if (job.failures < static_cast<std::uint32_t>(job.request->launch().max_restarts())) {
    return Requeue(id, attempt, exit_code);
  }
  Fail(id, attempt, exit_code);
}

void FailureJudge::Fail(JobId id, LiveAttempt& attempt, int exit_code) {
  attempt.stopping = true;
  if (const std::string& reason = state_.jobs[id].reason; !reason.empty()) {
    add_(FactOf(EndNote{.job = id, .text = reason}, state_.now));
  }
  add_({.at = state_.now, .fact = model::fact::Failed{.job = id, .exit_code = exit_code}});
}

void FailureJudge::Requeue(JobId id, LiveAttempt& attempt, int exit_code) {
  if (state_.jobs[id].ending || attempt.stopping) {
    return;
  }
  attempt.stopping = true;
  add_({.at = state_.now, .fact = model::fact::GpusLost{.job = id, .exit_code = exit_code}});
}

void FailureJudge::NoteAgentLost(NodeId node) {
  const std::set<JobId>& present = state_.attempts.present();
  const bool has_any = std::any_of(present.begin(), present.end(), [&](JobId job) {
    return state_.attempts.Of(job).back().PartOn(node) != nullptr;
  });
  if (has_any && lost_.insert(node).second) {
    Note({.kind = FailureNote::Kind::kAgentLost,
          .node = node,
          .key = "its agent is lost",
          .text = "its agent was lost, and what it ran"});
  }
}

void FailureJudge::NoteRenewed(NodeId node) {
  if (state_.failures.IsAvoidedSince(node, state_.nodes[node].hello.start())) {
    Note({.kind = FailureNote::Kind::kRenewed, .node = node});
  }
}

// When the attempt will have run well, where that matters.
std::optional<TimePoint> FailureJudge::WellFrom(JobId id, const LiveAttempt& attempt) const {
  if (!attempt.has_run || attempt.stopping || attempt.failed) {
    return std::nullopt;
  }
  return state_.failures.WantsToKnow(id, attempt.nodes(), attempt.opened)
             ? std::optional(attempt.ran_from + state_.failures.rules().soon)
             : std::nullopt;
}

void FailureJudge::NoteRunsWell(JobId id, const LiveAttempt& attempt) {
  const std::vector<NodeId> nodes = attempt.nodes();
  if (state_.failures.WantsToKnow(id, nodes, attempt.opened)) {
    Note({.kind = FailureNote::Kind::kRanWell, .job = id, .nodes = nodes});
  }
}

void FailureJudge::NoteAllThatRunWell() {
  if (state_.failures.quiet()) {
    return;
  }
  for (const JobId id : state_.attempts.present()) {
    const LiveAttempt& attempt = state_.attempts[id].list.back();
    if (const std::optional<TimePoint> at = WellFrom(id, attempt);
        at && *at <= state_.now && !state_.jobs[id].ending) {
      NoteRunsWell(id, attempt);
    }
  }
}

std::optional<TimePoint> FailureJudge::next_timer() const {
  std::optional<TimePoint> next = state_.failures.next_timer();
  if (!state_.failures.quiet()) {
    for (const JobId job : state_.attempts.present()) {
      next = base::Earlier(next, WellFrom(job, state_.attempts[job].list.back()));
    }
  }
  return next;
}

// The number of nodes that can show whether the job can run at all.
int FailureJudge::NodesFor(JobId id, bool with_drained) const {
  int nodes = 0;
  for (std::size_t i = 0; i < state_.nodes.size(); ++i) {
    const bool counts = with_drained || !state_.nodes[NodeAt(i)].drained;
    nodes += counts && state_.nodes.Accepts(*state_.jobs[id].request, NodeAt(i)) ? 1 : 0;
  }
  return nodes;
}

std::vector<model::Event> FailureJudge::Conclusions() {
  // The fewest GPUs with which the job can run, if the policy may choose; without any it needs a
  // node all the same.
  const auto least_gpus = [this](JobId job) {
    const v1::JobRequest& request = *state_.jobs[job].request;
    const bool elastic = state_.configuration->traits.may.resize && request.has_iterations();
    return std::max(1, elastic ? request.min_gpus() : request.gpus());
  };
  const auto runs = [this](JobId job) {
    const std::vector<LiveAttempt>& list = state_.attempts.Of(job);
    return !list.empty() && !list.back().stopping;
  };
  std::vector<model::Event> conclusions = state_.failures.Conclude(
      state_.now, {.available = [this](NodeId node) { return state_.nodes[node].available; },
                   .drained = [this](NodeId node) { return state_.nodes[node].drained; },
                   .accepts =
                       [this](JobId job, NodeId node) {
                         return state_.nodes.Accepts(*state_.jobs[job].request, node);
                       },
                   .least_gpus = least_gpus,
                   .runs = runs,
                   .unended = std::exchange(unended_, {})});
  const std::string by =
      "drained by the controller at " + base::UtcText(state_.options.UnixSeconds(state_.now));
  for (std::size_t i = 0, size = conclusions.size(); i < size; ++i) {
    if (conclusions[i].kind() == model::EventKind::kNodeDrained) {
      conclusions.push_back(FactOf(
          ChangeNote{.of_node = true, .node = conclusions[i].node(), .text = by}, state_.now));
    }
  }
  return conclusions;
}

}  // namespace trainyard::live
