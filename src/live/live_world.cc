// SPDX-License-Identifier: Apache-2.0
// Facts and actions. What agents say is in live_agents.cc.
#include "live/live_world.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/earlier.h"

namespace trainyard {
namespace {

bool SpeaksOfNode(EventKind kind) {
  return kind == EventKind::kNodeDown || kind == EventKind::kNodeUp ||
         kind == EventKind::kNodeDrained || kind == EventKind::kNodeUndrained;
}

bool SpeaksOfJob(EventKind kind) {
  return !SpeaksOfNode(kind) && kind != EventKind::kNoMoreSubmits && kind != EventKind::kNoted;
}

}  // namespace

Status CheckRules(const Rules& rules) {
  if (rules.end.source != EndRule::Source::kPredicted || rules.end.release_at_instant) {
    return InvalidArgument(
        "the preset registers ends that no live cluster knows of; expected sound mode, or "
        "replay-live --fast-forward");
  }
  return {};
}

LiveWorld::LiveWorld(LiveOptions options, const Cluster& cluster, const Engine& engine,
                     const ThroughputTable* profiles, LiveOutput& output)
    : engine_(engine),
      output_(output),
      state_(std::move(options), cluster),
      statuses_(state_, engine_),
      orders_(state_, output_),
      calls_(state_, statuses_, profiles, orders_, output_),
      judge_(state_, engine_, [this](Event event) { Add(std::move(event)); }) {
  calls_.SetFacts([this](Event event) { Add(std::move(event)); });
}

LiveWorld::~LiveWorld() = default;

// ----------------------------------------------------------------------------------------- inputs

void LiveWorld::OnCall(std::uint64_t call, v1::ClientRequest request) {
  inbox_.push_back({.kind = Input::Kind::kCall, .number = call, .request = std::move(request)});
}

void LiveWorld::OnCallGone(std::uint64_t call) { calls_.Drop(call); }

void LiveWorld::OnAgent(std::uint64_t connection, v1::AgentMessage message) {
  inbox_.push_back(
      {.kind = Input::Kind::kAgent, .number = connection, .message = std::move(message)});
}

void LiveWorld::OnAgentGone(std::uint64_t connection) {
  inbox_.push_back({.kind = Input::Kind::kAgentGone, .number = connection});
}

void LiveWorld::OnNoMoreSubmits() { inbox_.push_back({.kind = Input::Kind::kNoMoreSubmits}); }

bool LiveWorld::Absorb(std::vector<Event> ends) {
  batch_ = {};
  calls_.Begin();
  judge_.Begin();
  for (Event& end : ends) {
    Add(std::move(end));
  }
  if (fresh_) {
    for (std::size_t i = 0; i < state_.leases.size(); ++i) {
      Add({.kind = EventKind::kNodeDown, .at = state_.now, .node = NodeAt(i)});
    }
  }
  while (!inbox_.empty()) {
    Input input = std::move(inbox_.front());
    inbox_.pop_front();
    Take(input);
  }
  ExpireLeases();
  for (const JobId job : judge_.JudgeDue()) {
    DropGone(job);
  }
  judge_.NoteAllThatRunWell();
  for (const JobId job : state_.metrics.Due(state_.now)) {
    TellMetrics(job);
  }
  Conclude();
  return !batch_.events.empty();
}

void LiveWorld::Take(Input& input) {
  switch (input.kind) {
    case Input::Kind::kCall:
      return calls_.Take(input.number, input.request);
    case Input::Kind::kAgent:
      return TakeAgent(input.number, input.message);
    case Input::Kind::kAgentGone:
      return TakeGone(input.number);
    case Input::Kind::kNoMoreSubmits:
      return Add({.kind = EventKind::kNoMoreSubmits, .at = state_.now});
  }
}

Batch LiveWorld::Next(std::optional<TimePoint> wake_at) {
  CHECK(!batch_.events.empty() || (wake_at && *wake_at <= state_.now));
  batch_.now = state_.now;
  return std::move(batch_);
}

std::optional<TimePoint> LiveWorld::next_timer() const {
  std::optional<TimePoint> next = Earlier(state_.leases.next_end(), state_.metrics.next_timer());
  next = Earlier(next, judge_.next_timer());
  return state_.gates.queued().empty() ? next
                                       : Earlier(next, state_.failures.starts_from(state_.now));
}

void LiveWorld::ExpireLeases() {
  for (const NodeId node : state_.leases.Expired(state_.now)) {
    if (const std::optional<std::uint64_t> connection = state_.leases[node].connection) {
      output_.Close(*connection);
      TakeGone(*connection);
    }
    judge_.NoteAgentLost(node);
    Add({.kind = EventKind::kNodeDown, .at = state_.now, .node = node});
  }
}

// ------------------------------------------------------------------------------------------ facts

void LiveWorld::Add(Event event) {
  Note(event);
  batch_.events.push_back(std::move(event));
}

void LiveWorld::Note(const Event& event) {
  fresh_ = false;
  if (SpeaksOfNode(event.kind)) {
    state_.leases.Note(event);
  } else if (SpeaksOfJob(event.kind)) {
    state_.jobs.Note(event);
  }
  switch (event.kind) {
    case EventKind::kSubmit:
      return state_.attempts.Resize(state_.jobs.size());
    case EventKind::kEnded:
    case EventKind::kFailed:
    case EventKind::kCancel:
      state_.metrics.Drop(event.job);
      return calls_.AnswerVerdict(event.job);  // there will be no other
    case EventKind::kReported:
      return state_.metrics.Note(event);
    case EventKind::kNodeDown:
      return Fence(event.node);
    default:
      return;
  }
}

// A node that is down runs nothing: its agent has stopped what it had when its lease ran out.
void LiveWorld::Fence(NodeId node) {
  state_.gates.Clear(node);
  state_.strays.Clear(node);
  state_.attempts.SetUnseen(true);
  for (const JobId job : state_.attempts.Fence(node)) {
    judge_.Drop(job);  // what its other workers died of is the loss of this one
    DropGone(job);
  }
  state_.attempts.SetUnseen(false);
}

void LiveWorld::TellMetrics(JobId job) {
  if (std::optional<Event> event = state_.metrics.Untold(job, state_.now)) {
    Add(std::move(*event));
  }
}

void LiveWorld::SortFacts() {
  std::stable_sort(batch_.events.begin(), batch_.events.end(), [](const Event& a, const Event& b) {
    const int x = TakingOrder(a.kind);
    const int y = TakingOrder(b.kind);
    return x != y ? x < y : a.job < b.job;
  });
}

// What follows from the facts, as facts. In the order in which a replay will see them.
void LiveWorld::Conclude() {
  SortFacts();
  for (const Event& event : batch_.events) {
    state_.failures.Take(event);
  }
  std::vector<Event> conclusions = judge_.Conclusions();
  while (!conclusions.empty()) {
    for (Event& event : conclusions) {
      Add(std::move(event));
    }
    conclusions = judge_.Conclusions();
  }
  SortFacts();
}

// ---------------------------------------------------------------------------------------- actions

void LiveWorld::Note(const Action& action) {
  switch (action.kind) {
    case ActionKind::kAdmit:
      return calls_.AnswerVerdict(action.job);
    case ActionKind::kReject:
      End(action.job);
      state_.jobs[action.job].reason = action.reason;
      return calls_.AnswerVerdict(action.job);
    case ActionKind::kRelease:
      End(action.job);
      return StopAll(action.job);
    case ActionKind::kPreempt:
      return StopAll(action.job);
    case ActionKind::kResize:
    case ActionKind::kMigrate:
      StopAll(action.job);
      return Open(action);
    case ActionKind::kLaunch:
      return Open(action);
    case ActionKind::kTune:
      state_.attempts.Retune(action);
      to_tune_.insert(action.job);
      return;
    case ActionKind::kPace:
      state_.attempts.Retune(action);
      if (state_.jobs[action.job].is_emulated()) {
        to_tune_.insert(action.job);
      }
      return;
  }
}

// The engine may have found the end itself.
void LiveWorld::End(JobId job) {
  state_.failures.Forget(job);
  if (!state_.jobs[job].ending) {
    state_.jobs.End(job, state_.now);
    state_.metrics.Drop(job);
  }
}

void LiveWorld::Open(const Action& action) {
  state_.jobs[action.job].reason.clear();  // of an attempt before
  if (!action.grant.running) {
    return state_.gates.Hold(action.job);
  }
  state_.gates.Unhold(action.job);
  state_.gates.Queue(action.job);
  state_.attempts.Open(action, state_.now, !restoring_);
}

// The job's GPUs are wanted, or it has ended: what is left of it has to go.
void LiveWorld::StopAll(JobId job) {
  state_.gates.Unqueue(job);
  state_.gates.Unhold(job);
  to_tune_.erase(job);
  orders_.Stop(job, state_.attempts.Stop(job, state_.now));
  DropGone(job);
}

void LiveWorld::DropGone(JobId job) {
  orders_.Forget(job, state_.attempts.DropGone(job, state_.now));
}

void LiveWorld::Answer() {
  StartAttempts();
  Tune();
  orders_.SendForgets();
  calls_.Answer();
}

void LiveWorld::StartAttempts() {
  if (state_.failures.starts_from(state_.now)) {
    return;
  }
  const std::set<JobId> queued = state_.gates.queued();
  for (const JobId job : queued) {
    if (!state_.gates.IsOpen(job)) {
      continue;
    }
    LiveAttempt& attempt = state_.attempts.Of(job).back();
    for (std::size_t i = 0; i < attempt.parts.size(); ++i) {
      Part& part = attempt.parts[i];
      if (part.state == PartState::kQueued) {
        orders_.Start(job, attempt, i);
        part.state = PartState::kSent;
        state_.gates.Enter(part.node, {NumberOf(job), attempt.number}, part.gpus);
      }
    }
    state_.gates.Unqueue(job);
  }
}

// Tells agents what has changed for the attempts that run on.
void LiveWorld::Tune() {
  for (const JobId job : std::exchange(to_tune_, {})) {
    if (const LiveAttempt* const attempt = state_.attempts[job].wanted()) {
      orders_.Tune(job, *attempt);
    }
  }
}

// -------------------------------------------------------------------------------------- restoring

Status LiveWorld::Restore(const Batch& batch) {
  restoring_ = true;
  state_.now = batch.now;
  for (const Event& event : batch.events) {
    const bool submit = event.kind == EventKind::kSubmit;
    const auto is_missing = [this](NodeId node) { return Index(node) >= state_.leases.size(); };
    if (is_missing(event.node) ||
        std::any_of(event.barred.begin(), event.barred.end(), is_missing) ||
        (submit && Index(event.job) != state_.jobs.size()) ||
        (!submit && SpeaksOfJob(event.kind) && !state_.jobs.has(event.job))) {
      return BadInput("the journal speaks of job " + std::to_string(NumberOf(event.job)) +
                      " and node " + std::to_string(Index(event.node)) +
                      ", which are not there; expected the cluster and journal of this controller");
    }
    Note(event);
    state_.failures.Take(event);
  }
  return {};
}

void LiveWorld::Restore(std::span<const Action> actions) {
  for (const Action& action : actions) {
    Note(action);
  }
}

void LiveWorld::Restored(TimePoint now) {
  restoring_ = false;
  state_.now = now;
  state_.leases.Restart(now);
  calls_.DropAnswers();
  orders_.DropForgets();
  to_tune_.clear();  // agents hear of it when they have said hello
  const std::set<JobId> present = state_.attempts.present();
  for (const JobId job : present) {
    if (state_.jobs[job].ending) {  // what may be left of it, its agents report as strays
      state_.attempts.Forget(job);
    }
  }
}

void LiveWorld::SerializeJob(JobId job, const std::shared_ptr<const JobSpec>& spec,
                             StateStream& state) {
  state_.jobs.SerializeJob(job, spec, state);
  state_.attempts.SerializeJob(job, state_.leases.size(), state);
  state_.metrics.SerializeJob(job, state);
  if (state.reading() && state.good() && state_.attempts[job].wanted() != nullptr) {
    state_.gates.Queue(job);
  }
}

void LiveWorld::Serialize(StateStream& state) {
  state(state_.leases, state_.gates, state_.jobs, fresh_, state_.failures);
}

}  // namespace trainyard
