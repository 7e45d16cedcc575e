// SPDX-License-Identifier: Apache-2.0
// What agents say: what runs on their nodes, and how it ends.
#include <algorithm>
#include <set>

#include "live/live_world.h"
#include "live/measured/stage_metrics.h"
#include "live/notes.h"
#include "supervisor/data/data_store.h"

namespace trainyard::live {
namespace {

// The other parts of a job may have said none.
void NoteWords(const v1::AttemptReport& report, LiveJob& job) {
  if (!report.note().empty()) {
    job.note = report.note();
  }
  if (report.group_iteration_s() > 0) {
    job.group_iteration_s = report.group_iteration_s();
  }
}

}  // namespace

void LiveWorld::TakeAgent(std::uint64_t connection, const v1::AgentMessage& message) {
  if (message.has_hello()) {
    return TakeHello(connection, message.hello());
  }
  const std::optional<NodeId> node = state_.nodes.At(connection);
  if (!node) {
    return;  // from an agent that has been refused
  }
  state_.nodes.Hear(*node, state_.now);
  if (state_.nodes.MayOpen(*node)) {  // it has been silent
    change_log_.NoteUp(*node);
    Add({.at = state_.now, .fact = model::fact::NodeUp{.node = *node}});
  }
  if (message.has_heartbeat()) {
    messages_.AnswerTo(message.heartbeat(), connection);
  } else if (message.has_attempt()) {
    TakeReport(*node, message.attempt());
  } else if (message.has_log()) {
    calls_.TakeLogChunk(*node, message.log());
  } else if (message.has_attach()) {
    calls_.TakeAttachAnswer(*node, message.attach());
  } else if (message.has_data()) {
    TakeData(*node, message.data());
  }
}

void LiveWorld::TakeData(NodeId node, const v1::DataReport& data) {
  if (auto told = state_.nodes.HearData(node, data)) {
    Add({.at = state_.now, .fact = model::fact::DataKept{.node = node, .data = std::move(told)}});
  }
}

void LiveWorld::TakeAgentGone(std::uint64_t connection) {
  if (const std::optional<NodeId> node = state_.nodes.Leave(connection, state_.now)) {
    calls_.DropNode(*node);
  }
}

void LiveWorld::TakeHello(std::uint64_t connection, const v1::Hello& hello) {
  const std::optional<NodeId> known = state_.nodes.Named(hello.node());
  Status status = state_.nodes.CheckJoin(hello, known && state_.attempts.AreOn(*known));
  if (!status.ok() && status.error().code == ErrorCode::kNotFound) {
    status = calls_.AdmitNode(hello);
  }
  if (!status.ok()) {
    return messages_.Refuse(connection, status.error().message);
  }
  const NodeId id = *state_.nodes.Named(hello.node());
  const LiveNode& node = state_.nodes[id];
  if (node.connection == connection) {
    return;  // a second Hello; its attempts may be outdated by now
  }
  if (node.connection) {  // the same agent has connected again
    output_.Close(*node.connection);
  }
  if (!node.alive || (!node.available && !node.drained)) {
    change_log_.NoteUp(id);
  }
  judge_.SetRenewed(node.hello.start() != hello.start() ? std::optional(id) : std::nullopt);
  state_.nodes.Join(connection, hello, state_.now);
  messages_.Welcome(connection);
  TakeData(id, hello.data());
  state_.attempts.SetUnseen(true);
  Reconcile(id, hello);
  state_.attempts.SetUnseen(false);
  judge_.SetRenewed(std::nullopt);
  judge_.NoteRenewed(id);
  if (state_.nodes.MayOpen(id)) {
    Add({.at = state_.now, .fact = model::fact::NodeUp{.node = id}});
  }
}

// Compares the attempts that the agent has with those that it should have.
void LiveWorld::Reconcile(NodeId node, const v1::Hello& hello) {
  state_.occupancy.Clear(node);
  std::set<supervisor::AttemptKey> reported;
  for (const v1::AttemptReport& report : hello.attempts()) {
    if (!supervisor::IsBeforeStart(report)) {
      reported.insert(supervisor::KeyOf(report.id()));
    }
  }
  const std::set<JobId> present = state_.attempts.present();
  for (const JobId job : present) {
    for (LiveAttempt& attempt : state_.attempts.Of(job)) {
      Part* const part = attempt.PartOn(node);
      if (part != nullptr && !reported.contains({state_.numbers.Of(job), attempt.number})) {
        TakeMissing(job, attempt, *part);
      }
    }
    DropGone(job);
  }
  for (const v1::AttemptReport& report : hello.attempts()) {
    TakeReport(node, report);
    const LiveAttempt* const attempt = state_.attempts.Find(supervisor::KeyOf(report.id()));
    if (attempt != nullptr && !attempt->stopping && attempt->has_terms()) {
      to_tune_.insert(*state_.numbers.Find(report.id().job(),
                                           state_.jobs.size()));  // what was said meanwhile is lost
    }
  }
}

// The agent does not know the part of an attempt that should be on its node.
void LiveWorld::TakeMissing(JobId job, LiveAttempt& attempt, Part& part) {
  use_.NoteMissing(job, attempt, part);
  if (attempt.stopping) {
    part.state = PartState::kExited;
  } else if (part.state == PartState::kRunning) {
    part.state = PartState::kExited;
    judge_.Requeue(job, attempt, 0);
  } else if (part.state != PartState::kExited) {
    part.state = PartState::kQueued;  // the order to start it has been lost
    part.data = PartData::kUnasked;
    state_.start_queue.Add(job);
  }
}

void LiveWorld::TakeReport(NodeId node, const v1::AttemptReport& report) {
  if (!report.unended().empty()) {
    judge_.NoteUnended(node, report.unended());
  }
  const supervisor::AttemptKey key = supervisor::KeyOf(report.id());
  LiveAttempt* const attempt = state_.attempts.Find(key);
  Part* const part = attempt == nullptr ? nullptr : attempt->PartOn(node);
  if (part == nullptr) {
    return TakeStray(node, report);
  }
  if (supervisor::IsBeforeStart(report)) {
    if (attempt->stopping) {
      return messages_.StopStray(node, report.id());
    }
    return TakeFetch(*part, report);
  }
  const JobId id = *state_.numbers.Find(key.first, state_.jobs.size());  // it has an attempt
  LiveJob& job = state_.jobs[id];
  job.iterations_seen = std::max(job.iterations_seen, report.iterations());
  NoteProgress(job, *attempt, *part, report.iterations());
  part->late = report.late();
  use_.Hear(id, *attempt, *part, report);
  if (std::optional<StepsNote> steps = state_.steps.NewIn(id, report);
      steps && part->state != PartState::kExited) {
    Add(FactOf(*std::move(steps), state_.now));
  }
  NoteWords(report, job);
  if (!job.ending) {
    state_.metrics.Hear(id, report.metrics());
    state_.metrics.Hear(id, StageMetrics(report));
    meter_.Hear(id, *attempt, *part, report);
  }
  if (const PartFailure failure = FailureOf(report); !part->failure.has_failed()) {
    part->failure = failure;
  }
  if (report.state() == v1::AttemptReport::EXITED) {
    const bool ran = report.cause() == v1::AttemptReport::CAUSE_UNSPECIFIED &&
                     (report.finished() || report.exit_code() != 0);
    if (ran && part->state != PartState::kExited) {
      NoteBegin(id);
    }
    return TakeExit(id, *attempt, *part, report);
  }
  if (part->state == PartState::kExited) {
    return;  // an old report behind a newer one
  }
  state_.attempts.NoteRunning(id, *attempt, *part, state_.now);
  if (attempt->has_run) {
    NoteBegin(id);
  }
  state_.occupancy.Enter(node, key, part->gpus);
  if (attempt->stopping && report.state() != v1::AttemptReport::STOPPING) {
    messages_.Stop(id, {{.attempt = attempt->number, .node = node}});
  }
}

// The workers of the job run, or have run.
void LiveWorld::NoteBegin(JobId job) {
  if (!state_.jobs[job].ending && notices_.AwaitsBegin(job)) {
    Add(FactOf(BeginNote{.job = job}, state_.now));
  }
}

// How far the data set is. An old report may come behind a newer one.
void LiveWorld::TakeFetch(Part& part, const v1::AttemptReport& report) {
  if (part.state != PartState::kQueued || part.data == PartData::kReady) {
    return;
  }
  part.data = report.state() == v1::AttemptReport::READY ? PartData::kReady : PartData::kFetching;
  part.fetched = report.fetched();
}

// What a part reports first is what it began with, or has done while no controller was there.
void LiveWorld::NoteProgress(LiveJob& job, LiveAttempt& attempt, Part& part,
                             double iterations) const {
  const double before = part.iterations.value_or(iterations);
  part.iterations = iterations;
  if (iterations > before) {
    if (attempt.has_run) {
      const TimePoint since = attempt.progressed.value_or(attempt.ran_from);
      job.longest_step = std::max(job.longest_step, state_.now - since);
    }
    attempt.progressed = state_.now;
  }
}

// The report is of an attempt that the controller neither wants nor waits for.
void LiveWorld::TakeStray(NodeId node, const v1::AttemptReport& report) {
  if (report.state() == v1::AttemptReport::EXITED) {
    state_.occupancy.Leave(node, supervisor::KeyOf(report.id()));
    use_.HearStray(node, report);
    return messages_.Forget(node, report.id());
  }
  if (!supervisor::IsBeforeStart(report)) {
    state_.occupancy.Enter(node, supervisor::KeyOf(report.id()), supervisor::MaskOf(report.gpus()));
  }
  // Though it may be stopping already: the answer tells whether the attempt exists at all.
  messages_.StopStray(node, report.id());
}

void LiveWorld::TakeExit(JobId id, LiveAttempt& attempt, Part& part,
                         const v1::AttemptReport& report) {
  if (part.state == PartState::kExited) {
    return;
  }
  LiveJob& job = state_.jobs[id];
  // An attempt that an agent has never started has no exit code, and is reported with 0.
  if (job.ending && job.left_with.value_or(0) == 0 &&
      (part.state == PartState::kRunning || report.exit_code() != 0)) {
    job.left_with = report.exit_code();
  }
  part.state = PartState::kExited;
  part.finished = report.finished();
  state_.occupancy.Leave(part.node, {state_.numbers.Of(id), attempt.number});
  if (!report.message().empty() && (!job.ending || job.reason.empty())) {
    job.reason = report.message();  // but of a job that a rule has ended, that is the reason
  }
  if (!job.ending) {
    // Only what is on disk counts when an attempt has gone.
    if (job.counts_work() && report.checkpointed_iterations() > job.iterations_saved) {
      Add({.at = state_.now,
           .fact =
               model::fact::Progress{.job = id, .work_done = report.checkpointed_iterations()}});
    }
    if (attempt.has_finished() || (job.runs_once() && attempt.parts.front().finished)) {
      judge_.NoteRunsWell(id, attempt);
      Add({.at = state_.now, .fact = model::fact::Ended{.job = id}});
    } else {
      TellMetrics(id);  // the next decision is about what it has left behind
      if (!attempt.stopping && !report.finished()) {
        judge_.Take(id, attempt);
      }
    }
  }
  DropGone(id);
}

}  // namespace trainyard::live
