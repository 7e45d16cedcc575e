// SPDX-License-Identifier: Apache-2.0
// What agents say: who they are, what runs on their nodes, and how it ends.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "live/live_world.h"
#include "profile/stage_model.h"

namespace trainyard {
namespace {

std::uint64_t MaskOf(const google::protobuf::RepeatedField<std::int32_t>& gpus) {
  std::uint64_t mask = 0;
  for (const int gpu : gpus) {
    mask |= gpu >= 0 && gpu < kMaxGpusPerNode ? std::uint64_t{1} << gpu : 0;
  }
  return mask;
}

}  // namespace

void LiveWorld::TakeAgent(std::uint64_t connection, const v1::AgentMessage& message) {
  if (message.has_hello()) {
    return TakeHello(connection, message.hello());
  }
  const auto at = connections_.find(connection);
  if (at == connections_.end()) {
    return;  // said by somebody who has been sent away
  }
  Node& node = nodes_[Index(at->second)];
  node.heard = now_;
  if (message.has_heartbeat()) {
    Send(at->second, AnswerTo(message.heartbeat()));
  } else if (message.has_attempt()) {
    TakeReport(at->second, message.attempt());
  } else if (message.has_log()) {
    TakeLogChunk(message.log());
  }
}

std::string LiveWorld::WhyNotJoin(const v1::Hello& hello) const {
  const auto at = node_names_.find(hello.node());
  if (hello.protocol() != 1) {
    return "the agent speaks protocol " + std::to_string(hello.protocol()) + "; expected 1";
  }
  if (at == node_names_.end()) {
    return "node '" + hello.node() + "' is not in the controller's cluster file";
  }
  const NodeSpec& spec = cluster_.nodes[Index(at->second)];
  if (hello.gpus() != spec.gpus) {
    return "node '" + hello.node() + "' has " + std::to_string(hello.gpus()) + " GPUs; expected " +
           std::to_string(spec.gpus) + " as in the cluster file";
  }
  const Node& node = nodes_[Index(at->second)];
  if (node.connection && node.hello.start() != hello.start()) {
    return "node '" + hello.node() + "' has an agent already";
  }
  return {};
}

void LiveWorld::TakeHello(std::uint64_t connection, const v1::Hello& hello) {
  if (const std::string why = WhyNotJoin(hello); !why.empty()) {
    v1::ControllerMessage refusal;
    refusal.set_epoch(options_.epoch);
    refusal.mutable_refusal()->set_code(kFailedPrecondition);
    refusal.mutable_refusal()->set_message(why);
    output_.Send(connection, std::move(refusal));
    output_.Close(connection);
    return;
  }
  const NodeId id = node_names_.find(hello.node())->second;
  Node& node = nodes_[Index(id)];
  if (node.connection == connection) {
    return;  // said twice; what it says of attempts may be old by now
  }
  if (node.connection) {  // the same agent has come by another way
    connections_.erase(*node.connection);
    output_.Close(*node.connection);
  }
  renewed_ = node.hello.start() != hello.start() ? std::optional(id) : std::nullopt;
  node.connection = connection;
  node.hello = hello;
  node.hello.clear_attempts();
  node.heard = now_;
  connections_[connection] = id;
  Send(id, Welcome());
  late_ = true;
  Reconcile(id, hello);
  late_ = false;
  renewed_.reset();
  if (failures_.IsAvoidedSince(id, hello.start())) {
    NoteFault({.kind = FailureNote::Kind::kRenewed, .node = id});
  }
  node.alive = true;
  if (!node.available && !node.drained) {
    Add({.kind = EventKind::kNodeUp, .at = now_, .node = id});
  }
}

v1::ControllerMessage LiveWorld::Welcome() const {
  v1::ControllerMessage welcome;
  welcome.set_epoch(options_.epoch);
  welcome.mutable_welcome()->set_heartbeat(Milliseconds(options_.heartbeat));
  welcome.mutable_welcome()->set_lease(Milliseconds(options_.lease));
  welcome.mutable_welcome()->set_grace(Milliseconds(options_.grace));
  return welcome;
}

v1::ControllerMessage LiveWorld::AnswerTo(const v1::Heartbeat& heartbeat) const {
  v1::ControllerMessage answer;
  answer.set_epoch(options_.epoch);
  answer.mutable_heartbeat()->set_number(heartbeat.number());
  return answer;
}

// What the agent has against what it should have.
void LiveWorld::Reconcile(NodeId id, const v1::Hello& hello) {
  nodes_[Index(id)].holders.clear();
  std::set<std::pair<std::uint64_t, std::uint32_t>> reported;
  for (const v1::AttemptReport& report : hello.attempts()) {
    reported.insert({report.id().job(), report.id().attempt()});
  }
  for (const JobId job : Present()) {
    for (Attempt& attempt : jobs_[Index(job)].attempts) {
      if (reported.contains({NumberOf(job), attempt.number})) {
        continue;
      }
      for (Part& part : attempt.parts) {
        if (part.node == id) {
          Missing(job, attempt, part);
        }
      }
    }
    DropGone(job);
  }
  for (const v1::AttemptReport& report : hello.attempts()) {
    TakeReport(id, report);
    const Attempt* const attempt = FindAttempt(report.id().job(), report.id().attempt());
    if (attempt != nullptr && !attempt->stopping &&
        HasTerms(JobAt(report.id().job() - 1), *attempt)) {
      to_tune_.insert(JobAt(report.id().job() - 1));  // what was said meanwhile is lost
    }
  }
}

// The agent does not know the part of an attempt that should be on its node.
void LiveWorld::Missing(JobId job, Attempt& attempt, Part& part) {
  if (attempt.stopping) {
    part.state = PartState::kExited;
  } else if (part.state == PartState::kRunning) {
    part.state = PartState::kExited;
    Requeue(job, attempt, 0);
  } else if (part.state != PartState::kExited) {
    part.state = PartState::kQueued;  // the order to start it has been lost
    to_start_.insert(job);
  }
}

LiveWorld::Attempt* LiveWorld::FindAttempt(std::uint64_t job, std::uint32_t number) {
  if (job == 0 || job > jobs_.size()) {
    return nullptr;
  }
  std::vector<Attempt>& attempts = jobs_[job - 1].attempts;
  const auto at = std::find_if(attempts.begin(), attempts.end(), [number](const Attempt& attempt) {
    return attempt.number == number;
  });
  return at == attempts.end() ? nullptr : &*at;
}

void LiveWorld::TakeReport(NodeId node, const v1::AttemptReport& report) {
  Attempt* attempt = FindAttempt(report.id().job(), report.id().attempt());
  if (attempt == nullptr) {
    return TakeStray(node, report);
  }
  const auto part = std::find_if(attempt->parts.begin(), attempt->parts.end(),
                                 [node](const Part& of) { return of.node == node; });
  if (part == attempt->parts.end()) {
    return TakeStray(node, report);
  }
  const JobId job = JobAt(report.id().job() - 1);
  LiveJob& live = jobs_[Index(job)];
  live.iterations_seen = std::max(live.iterations_seen, report.iterations());
  NoteMetrics(job, report);
  if (const PartFailure failure = FailureOf(report); !part->failure.has_failed()) {
    part->failure = failure;
  }
  if (report.state() == v1::AttemptReport::EXITED) {
    return TakeExit(job, *attempt, *part, report);
  }
  if (part->state == PartState::kExited) {
    return;  // an old report behind a newer one
  }
  part->state = PartState::kRunning;
  NoteRunning(live, *attempt);
  nodes_[Index(node)].holders[{NumberOf(job), attempt->number}] = part->gpus;
  if (attempt->stopping && report.state() != v1::AttemptReport::STOPPING) {
    SendStop(job, attempt->number, node);
  }
}

void LiveWorld::NoteRunning(LiveJob& job, Attempt& attempt) const {
  if (!attempt.has_run &&
      std::all_of(attempt.parts.begin(), attempt.parts.end(),
                  [](const Part& of) { return of.state == PartState::kRunning; })) {
    attempt.has_run = true;
    attempt.ran_from = now_;
    if (!late_) {
      job.start_took = now_ - attempt.opened;
    }
  }
}

// Something runs, or has run, that belongs to no attempt that is wanted or waited for.
void LiveWorld::TakeStray(NodeId id, const v1::AttemptReport& report) {
  Node& node = nodes_[Index(id)];
  const std::pair<std::uint64_t, std::uint32_t> key{report.id().job(), report.id().attempt()};
  if (report.state() == v1::AttemptReport::EXITED) {
    node.holders.erase(key);
    to_forget_.emplace_back(id, report.id());
    return;
  }
  node.holders[key] = MaskOf(report.gpus());
  // Though it may be stopping: the answer says whether it is there at all.
  v1::ControllerMessage message;
  *message.mutable_stop()->mutable_id() = report.id();
  message.mutable_stop()->set_grace(Milliseconds(options_.grace));
  Send(id, std::move(message));
}

void LiveWorld::TakeExit(JobId id, Attempt& attempt, Part& part, const v1::AttemptReport& report) {
  if (part.state == PartState::kExited) {
    return;
  }
  LiveJob& job = jobs_[Index(id)];
  // One that an agent has never started has no exit code, and is told with 0.
  if (job.ending && job.left_with.value_or(0) == 0 &&
      (part.state == PartState::kRunning || report.exit_code() != 0)) {
    job.left_with = report.exit_code();
  }
  part.state = PartState::kExited;
  part.finished = report.finished();
  nodes_[Index(part.node)].holders.erase({NumberOf(id), attempt.number});
  if (!report.message().empty()) {
    job.reason = report.message();
  }
  if (!job.ending) {
    SaveProgress(id, report);
    if (HasFinished(attempt)) {
      NoteRunsWell(id, attempt);
      Add({.kind = EventKind::kEnded, .at = now_, .job = id});
    } else {
      TellMetrics(id);  // the next decision is about what it has left behind
      if (!attempt.stopping && !report.finished()) {
        attempt.failed = attempt.failed.value_or(now_);
        to_judge_.insert(id);
        if (MayJudge(attempt)) {
          Judge(id, attempt);
        }
      }
    }
  }
  DropGone(id);
}

// Whether the engine counts the job's work in the unit in which its workers report it.
bool LiveWorld::CountsWork(JobId id) const {
  const JobSpec& spec = *engine_.records()[Index(id)].spec;
  return StatesStages(spec) ||
         jobs_[Index(id)].request->launch().workers() == v1::LaunchSpec::EMULATED ||
         (spec.profile_row >= 0 && jobs_[Index(id)].request->has_iterations());
}

// Only what is on disk counts when an attempt has gone.
void LiveWorld::SaveProgress(JobId id, const v1::AttemptReport& report) {
  LiveJob& job = jobs_[Index(id)];
  if (CountsWork(id) && report.checkpointed_iterations() > job.iterations_saved) {
    Add({.kind = EventKind::kProgress,
         .at = now_,
         .job = id,
         .work_done = report.checkpointed_iterations()});
  }
}

// Names beyond those that the engine keeps would be told again and again.
void LiveWorld::NoteMetrics(JobId id, const v1::AttemptReport& report) {
  LiveJob& job = jobs_[Index(id)];
  if (job.ending) {
    return;
  }
  const std::vector<Metric>& known = engine_.records()[Index(id)].reported;
  for (const v1::Metric& metric : report.metrics()) {
    if (!IsMetricName(metric.name()) || !std::isfinite(metric.value())) {
      continue;
    }
    const auto same_name = [&metric](const Metric& m) { return m.name == metric.name(); };
    const auto old = std::find_if(known.begin(), known.end(), same_name);
    if (old != known.end() && old->value == metric.value()) {
      job.untold.erase(metric.name());
    } else if (old != known.end() || known.size() + job.untold.size() < kMaxMetrics ||
               job.untold.contains(metric.name())) {
      job.untold[metric.name()] = metric.value();
    }
  }
  if (job.untold.empty()) {
    untold_.erase(id);
  } else {
    untold_.insert(id);
  }
}

void LiveWorld::TellMetrics(JobId id) {
  const LiveJob& job = jobs_[Index(id)];
  if (job.untold.empty()) {
    return;
  }
  Event event{.kind = EventKind::kReported, .at = now_, .job = id};
  for (const auto& [name, value] : job.untold) {
    event.metrics.push_back({.name = name, .value = value});
  }
  Add(std::move(event));
}

void LiveWorld::TellDueMetrics() {
  for (const JobId job : std::vector<JobId>(untold_.begin(), untold_.end())) {
    if (jobs_[Index(job)].ending) {
      untold_.erase(job);
    } else if (jobs_[Index(job)].tell_from <= now_) {
      TellMetrics(job);
    }
  }
}

// The job's own fault: it may try again, or it has failed.
void LiveWorld::Fail(JobId id, Attempt& attempt, int exit_code) {
  const LiveJob& job = jobs_[Index(id)];
  if (job.failures < static_cast<std::uint32_t>(job.request->launch().max_restarts())) {
    return Requeue(id, attempt, exit_code);
  }
  attempt.stopping = true;
  Add({.kind = EventKind::kFailed, .at = now_, .job = id, .exit_code = exit_code});
}

void LiveWorld::Requeue(JobId id, Attempt& attempt, int exit_code) {
  if (jobs_[Index(id)].ending || attempt.stopping) {
    return;
  }
  attempt.stopping = true;
  Add({.kind = EventKind::kGpusLost, .at = now_, .job = id, .exit_code = exit_code});
}

}  // namespace trainyard
