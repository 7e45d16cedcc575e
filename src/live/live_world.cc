// SPDX-License-Identifier: Apache-2.0
// Facts, actions, leases and attempts. What agents say is in live_agents.cc, what clients ask for
// in live_calls.cc.
#include "live/live_world.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "base/earlier.h"
#include "profile/stage_model.h"

namespace trainyard {
namespace {

constexpr int kFirstMasterPort = 20'000;
constexpr std::uint64_t kMasterPorts = 10'000;

// A decision may rest on a metric, so each goes to the journal, and to the disk; not more often.
constexpr Duration kMetricsPause = std::chrono::seconds(10);

v1::AttemptId IdOf(JobId job, std::uint32_t attempt) {
  v1::AttemptId id;
  id.set_job(NumberOf(job));
  id.set_attempt(attempt);
  return id;
}

bool SpeaksOfJob(EventKind kind) {
  switch (kind) {
    case EventKind::kNodeDown:
    case EventKind::kNodeUp:
    case EventKind::kNodeDrained:
    case EventKind::kNodeUndrained:
    case EventKind::kNoMoreSubmits:
    case EventKind::kNoted:
      return false;
    default:
      return true;
  }
}

v1::NodeShare ShareOf(const Grant& grant, NodeId node) {
  v1::NodeShare share;
  for (const Slice& slice : grant.slices) {
    if (slice.node == node) {
      share.set_milli_cpus(slice.soft.milli_cpus);
      share.set_memory_mib(slice.soft.memory_mib);
      share.set_storage_kbps(slice.soft.storage_kbps);
      share.set_loader_workers(slice.loader_workers);
    }
  }
  return share;
}

// The rules for failures, in the engine's time.
FailureRules RulesIn(const LiveOptions& options) {
  FailureRules rules = options.failures;
  for (Duration* time : {&rules.soon, &rules.window, &rules.first_pause, &rules.longest_pause}) {
    *time = Duration{static_cast<std::int64_t>(Micros(*time) * options.time_scale)};
  }
  return rules;
}

}  // namespace

Status CheckRules(const Rules& rules) {
  const EndRule& end = rules.end;
  if (end.by_plan || end.found_late || end.release_at_instant) {
    return InvalidArgument(
        "the preset registers ends that no live cluster knows of; expected sound mode, or "
        "replay-live --fast-forward");
  }
  return {};
}

LiveWorld::LiveWorld(LiveOptions options, const Cluster& cluster, const Engine& engine,
                     const ThroughputTable* profiles, LiveOutput& output)
    : options_(std::move(options)),
      cluster_(cluster),
      engine_(engine),
      profiles_(profiles),
      output_(output),
      nodes_(cluster.nodes.size()),
      failures_(cluster, RulesIn(options_)) {
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
    node_names_[cluster.nodes[i].name] = NodeAt(i);
    states_gpu_types_ = states_gpu_types_ || !cluster.nodes[i].gpu_type.empty();
  }
}

LiveWorld::~LiveWorld() = default;

// ----------------------------------------------------------------------------------------- inputs

void LiveWorld::OnCall(std::uint64_t call, v1::ClientRequest request) {
  inbox_.push_back({.kind = Input::Kind::kCall, .number = call, .request = std::move(request)});
}

void LiveWorld::OnCallGone(std::uint64_t call) {
  log_calls_.erase(call);
  if (const auto waiting = verdict_calls_.find(call); waiting != verdict_calls_.end()) {
    std::erase(jobs_[Index(waiting->second)].verdict_calls, call);
    verdict_calls_.erase(waiting);
  }
}

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
  known_jobs_ = jobs_.size();
  for (Event& end : ends) {
    Add(std::move(end));
  }
  if (fresh_) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      Add({.kind = EventKind::kNodeDown, .at = now_, .node = NodeAt(i)});
    }
  }
  while (!inbox_.empty()) {
    Input input = std::move(inbox_.front());
    inbox_.pop_front();
    Take(input);
  }
  ExpireLeases();
  JudgeFailures();
  NoteWhatRunsWell();
  TellDueMetrics();
  Conclude();
  return !batch_.events.empty();
}

void LiveWorld::SortFacts() {
  std::stable_sort(batch_.events.begin(), batch_.events.end(), [](const Event& a, const Event& b) {
    const int x = TakingOrder(a.kind);
    const int y = TakingOrder(b.kind);
    return x != y ? x < y : a.job < b.job;
  });
}

void LiveWorld::Take(Input& input) {
  switch (input.kind) {
    case Input::Kind::kCall:
      return TakeCall(input.number, input.request);
    case Input::Kind::kAgent:
      return TakeAgent(input.number, input.message);
    case Input::Kind::kAgentGone:
      if (const auto at = connections_.find(input.number); at != connections_.end()) {
        nodes_[Index(at->second)].connection.reset();
        ForgetLogCalls(at->second);
        connections_.erase(at);
      }
      return;
    case Input::Kind::kNoMoreSubmits:
      return Add({.kind = EventKind::kNoMoreSubmits, .at = now_});
  }
}

Batch LiveWorld::Next(std::optional<TimePoint> /*wake_at*/) {
  batch_.now = now_;
  return std::move(batch_);
}

// ------------------------------------------------------------------------------------------ facts

void LiveWorld::Add(Event event) {
  Note(event);
  batch_.events.push_back(std::move(event));
}

// What a fact means for the world, told now or read from the journal.
void LiveWorld::Note(const Event& event) {
  fresh_ = false;
  switch (event.kind) {
    case EventKind::kSubmit: {
      jobs_.resize(std::max(jobs_.size(), Index(event.job) + 1));
      LiveJob& job = jobs_[Index(event.job)];
      if (job.request == nullptr) {  // told by the journal
        const auto request = std::make_shared<v1::JobRequest>();
        CHECK(request->ParseFromString(event.spec->launch));
        job.request = request;
      }
      job.submitted = event.at;
      if (const std::string& token = job.request->launch().client_token(); !token.empty()) {
        tokens_[token] = event.job;
      }
      ++live_jobs_;
      return;
    }
    case EventKind::kEnded:
    case EventKind::kFailed:
    case EventKind::kCancel: {
      LiveJob& job = jobs_[Index(event.job)];
      AnswerVerdict(event.job);  // there will be no other
      End(job, event.at);
      job.exit_code = event.exit_code;
      job.failures += event.kind == EventKind::kFailed ? 1 : 0;
      return;
    }
    case EventKind::kGpusLost:
      jobs_[Index(event.job)].failures += event.exit_code != 0 ? 1 : 0;
      return;
    case EventKind::kProgress: {
      LiveJob& job = jobs_[Index(event.job)];
      job.iterations_saved = event.work_done;
      job.iterations_seen = event.work_done;
      return;
    }
    case EventKind::kReported: {
      LiveJob& job = jobs_[Index(event.job)];
      job.untold.clear();
      job.tell_from = event.at + Scaled(kMetricsPause);
      untold_.erase(event.job);
      return;
    }
    case EventKind::kResize: {
      LiveJob& job = jobs_[Index(event.job)];
      const auto request = std::make_shared<v1::JobRequest>(*job.request);
      request->set_gpus(event.gpus);
      job.request = request;
      return;
    }
    case EventKind::kNodeDown:
      nodes_[Index(event.node)].alive = false;
      nodes_[Index(event.node)].available = false;
      Fence(event.node);
      return;
    case EventKind::kNodeUp:
      nodes_[Index(event.node)].alive = true;
      nodes_[Index(event.node)].available = true;
      return;
    case EventKind::kNodeDrained:
      nodes_[Index(event.node)].drained = true;
      nodes_[Index(event.node)].available = false;
      return;
    case EventKind::kNodeUndrained:
      nodes_[Index(event.node)].drained = false;
      return;
    case EventKind::kNoMoreSubmits:
    case EventKind::kNoted:
    case EventKind::kBarred:
      return;
  }
}

// A node that is down runs nothing: its agent has stopped what it had when its lease ran out.
void LiveWorld::Fence(NodeId node) {
  nodes_[Index(node)].holders.clear();
  late_ = true;
  for (const JobId job : Present()) {
    for (Attempt& attempt : jobs_[Index(job)].attempts) {
      for (Part& part : attempt.parts) {
        if (part.node == node && part.state != PartState::kExited) {
          part.state = PartState::kExited;
          to_judge_.erase(job);  // what its other workers died of is the loss of this one
        }
      }
    }
    DropGone(job);
  }
  late_ = false;
}

void LiveWorld::End(LiveJob& job, TimePoint at) {
  job.ending = true;
  job.ended = at;
  --live_jobs_;
}

void LiveWorld::Note(const Action& action) {
  LiveJob& job = jobs_[Index(action.job)];
  switch (action.kind) {
    case ActionKind::kAdmit:
      return AnswerVerdict(action.job);
    case ActionKind::kReject:
      failures_.Forget(action.job);
      End(job, now_);
      job.reason = action.reason;
      return AnswerVerdict(action.job);
    case ActionKind::kRelease:
      failures_.Forget(action.job);
      if (!job.ending) {  // the engine has found the end itself
        End(job, now_);
      }
      return StopAll(action.job);
    case ActionKind::kPreempt:
      return StopAll(action.job);
    case ActionKind::kResize:
    case ActionKind::kMigrate:
      StopAll(action.job);
      return Open(action.job, action.grant);
    case ActionKind::kLaunch:
      return Open(action.job, action.grant);
    case ActionKind::kTune:
      to_tune_.insert(action.job);
      return;
    case ActionKind::kPace:
      return;
  }
}

void LiveWorld::Open(JobId id, const Grant& grant) {
  LiveJob& job = jobs_[Index(id)];
  job.reason.clear();  // of an attempt before
  job.start_took.reset();
  if (!grant.running) {
    holding_.insert(id);
    return;
  }
  holding_.erase(id);
  Attempt attempt{.number = ++job.last_attempt,
                  .parts = {},
                  .sharing = grant.sharing,
                  .group = grant.group,
                  .opened = now_};
  std::vector<std::pair<NodeId, int>> places;
  for (const Slice& slice : grant.slices) {
    attempt.parts.push_back({.node = slice.node,
                             .gpus = slice.gpus,
                             .state = restoring_ ? PartState::kUnknown : PartState::kQueued});
    places.emplace_back(slice.node, std::popcount(slice.gpus));
  }
  job.places.push_back(std::move(places));
  job.attempts.push_back(std::move(attempt));
  to_start_.insert(id);
  present_.insert(id);
  if (grant.sharing != Sharing::kExclusive) {
    sharing_.insert(id);
  }
}

// The job's GPUs are wanted, or it has ended: what is left of it has to go.
void LiveWorld::StopAll(JobId id) {
  LiveJob& job = jobs_[Index(id)];
  to_start_.erase(id);
  to_tune_.erase(id);
  sharing_.erase(id);
  holding_.erase(id);
  for (Attempt& attempt : job.attempts) {
    if (attempt.told_to_stop) {
      continue;
    }
    attempt.stopping = true;
    std::erase_if(attempt.parts, [](const Part& part) { return part.state == PartState::kQueued; });
    if (attempt.parts.empty()) {
      job.places[attempt.number - 1].clear();
    }
    if (AllExited(attempt)) {
      continue;  // nobody is left to get notice
    }
    attempt.told_to_stop = true;
    attempt.notice = now_;
    job.stop_took.reset();
    for (const Part& part : attempt.parts) {
      if (part.state != PartState::kExited) {
        SendStop(id, attempt.number, part.node);
      }
    }
  }
  DropGone(id);
}

// An attempt of which nothing is left is forgotten here and by its agents. Not sooner: a part that
// has done its work while others go on would be started again by a controller that starts anew.
void LiveWorld::DropGone(JobId id) {
  std::vector<Attempt>& attempts = jobs_[Index(id)].attempts;
  std::erase_if(attempts, [&](const Attempt& attempt) {
    if (!attempt.stopping || !AllExited(attempt)) {
      return false;
    }
    if (attempt.told_to_stop && attempt.has_run && !late_) {  // else none has seen when it left
      jobs_[Index(id)].stop_took = now_ - attempt.notice;
    }
    for (const Part& part : attempt.parts) {
      to_forget_.emplace_back(part.node, IdOf(id, attempt.number));
    }
    return true;
  });
  if (attempts.empty()) {
    present_.erase(id);
  }
}

bool LiveWorld::HasFinished(const Attempt& attempt) {
  return !attempt.parts.empty() && std::all_of(attempt.parts.begin(), attempt.parts.end(),
                                               [](const Part& part) { return part.finished; });
}

bool LiveWorld::AllExited(const Attempt& attempt) {
  return std::all_of(attempt.parts.begin(), attempt.parts.end(),
                     [](const Part& part) { return part.state == PartState::kExited; });
}

void LiveWorld::Answer() {
  StartAttempts();
  Tune();
  for (const auto& [node, attempt] : to_forget_) {
    v1::ControllerMessage message;
    *message.mutable_forget()->mutable_id() = attempt;
    Send(node, std::move(message));
  }
  to_forget_.clear();
  for (const std::function<void()>& answer : answers_) {
    answer();
  }
  answers_.clear();
}

// -------------------------------------------------------------------------------------- restoring

Status LiveWorld::Restore(const Batch& batch) {
  restoring_ = true;
  now_ = batch.now;
  for (const Event& event : batch.events) {
    const bool submit = event.kind == EventKind::kSubmit;
    const auto is_missing = [this](NodeId node) { return Index(node) >= nodes_.size(); };
    if (is_missing(event.node) ||
        std::any_of(event.barred.begin(), event.barred.end(), is_missing) ||
        (submit && Index(event.job) != jobs_.size()) ||
        (!submit && SpeaksOfJob(event.kind) && Index(event.job) >= jobs_.size())) {
      return BadInput("the journal speaks of job " + std::to_string(NumberOf(event.job)) +
                      " and node " + std::to_string(Index(event.node)) +
                      ", which are not there; expected the cluster and journal of this controller");
    }
    Note(event);
    failures_.Take(event);
  }
  return {};
}

void LiveWorld::Restore(std::span<const Action> actions) {
  for (const Action& action : actions) {
    Note(action);
  }
}

// Of a part that has not gone, agents tell.
void LiveWorld::Part::Serialize(StateStream& stream) {
  // One that has failed is told again, if it is not clear yet whose fault that is.
  bool exited = state == PartState::kExited && !failure.has_failed();
  stream(node, gpus, exited, finished);
  if (stream.reading()) {
    state = exited ? PartState::kExited : PartState::kUnknown;
  }
}

void LiveWorld::SerializeJob(JobId id, StateStream& state) {
  jobs_.resize(std::max(jobs_.size(), Index(id) + 1));
  LiveJob& job = jobs_[Index(id)];
  state(job);
  if (!state.reading()) {
    return;
  }
  const std::shared_ptr<const JobSpec> spec = engine_.records()[Index(id)].spec;
  const auto request = std::make_shared<v1::JobRequest>();
  const auto is_there = [this](const Part& part) { return Index(part.node) < nodes_.size(); };
  if (!spec || !request->ParseFromString(spec->launch) ||
      !std::all_of(job.attempts.begin(), job.attempts.end(), [&](const Attempt& attempt) {
        return attempt.number >= 1 && attempt.number <= job.places.size() &&
               std::all_of(attempt.parts.begin(), attempt.parts.end(), is_there);
      })) {
    return state.Fail();
  }
  if (!request->launch().client_token().empty()) {
    tokens_[request->launch().client_token()] = id;
  }
  request->set_gpus(spec->gpus);  // it may have been resized
  job.request = request;
  if (!job.attempts.empty()) {
    present_.insert(id);
    if (!job.attempts.back().stopping) {
      to_start_.insert(id);
    }
  }
  if (!job.untold.empty()) {
    untold_.insert(id);
  }
}

void LiveWorld::Serialize(StateStream& state) {
  if (state.Size(nodes_.size()) != nodes_.size()) {
    return state.Fail();
  }
  for (Node& node : nodes_) {
    state(node);
  }
  state(sharing_, holding_, live_jobs_, fresh_, failures_);
}

void LiveWorld::Restored(TimePoint now) {
  restoring_ = false;
  now_ = now;
  for (Node& node : nodes_) {
    node.heard = now;
  }
  answers_.clear();
  to_forget_.clear();
  to_tune_.clear();  // agents hear of it when they have said hello
  for (const JobId job : Present()) {
    if (jobs_[Index(job)].ending) {  // what may be left of it, its agents report as strays
      jobs_[Index(job)].attempts.clear();
      present_.erase(job);
    }
  }
}

// ----------------------------------------------------------------------------------------- leases

std::optional<TimePoint> LiveWorld::LeaseEnd(const Node& node) const {
  if (!node.alive) {
    return std::nullopt;
  }
  return node.heard + Scaled(options_.lease + options_.grace + options_.margin);
}

std::optional<TimePoint> LiveWorld::next_timer() const {
  std::optional<TimePoint> next;
  for (const Node& node : nodes_) {
    if (const std::optional<TimePoint> end = LeaseEnd(node); end && (!next || *end < *next)) {
      next = end;
    }
  }
  for (const JobId job : untold_) {
    next = std::min(next.value_or(kEndOfTime), jobs_[Index(job)].tell_from);
  }
  next = Earlier(next, failures_.next_timer());
  if (!to_start_.empty()) {
    next = Earlier(next, failures_.starts_from(now_));
  }
  if (!failures_.quiet()) {
    for (const JobId job : present_) {
      next = Earlier(next, WellFrom(job, jobs_[Index(job)].attempts.back()));
    }
  }
  return next;
}

void LiveWorld::ExpireLeases() {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    const std::optional<TimePoint> end = LeaseEnd(node);
    if (!end || *end > now_) {
      continue;
    }
    if (node.connection) {
      output_.Close(*node.connection);
      connections_.erase(*node.connection);
      node.connection.reset();
      ForgetLogCalls(NodeAt(i));
    }
    NoteAgentLost(NodeAt(i));
    Add({.kind = EventKind::kNodeDown, .at = now_, .node = NodeAt(i)});
  }
}

// --------------------------------------------------------------------------------------- attempts

Duration LiveWorld::Scaled(Duration real) const {
  return Duration{static_cast<std::int64_t>(Micros(real) * options_.time_scale)};
}

Duration LiveWorld::GraceOf(const LiveJob& job) const {
  const Duration own = std::chrono::milliseconds(job.request->launch().grace());
  return own.count() > 0 ? std::min(own, options_.grace) : options_.grace;
}

// No earlier attempt of the job may be left, nor any on its GPUs but those it shares them with.
bool LiveWorld::MayStart(const LiveJob& job) {
  if (job.attempts.size() != 1) {
    return false;
  }
  const std::vector<Part>& parts = job.attempts.back().parts;
  return std::all_of(parts.begin(), parts.end(), [this, &job](const Part& part) {
    return part.state != PartState::kUnknown &&
           (part.state != PartState::kQueued || MayBeOn(job.attempts.back(), part));
  });
}

bool LiveWorld::MayBeOn(const Attempt& attempt, const Part& part) {
  const Node& node = nodes_[Index(part.node)];
  return node.connection &&
         std::all_of(node.holders.begin(), node.holders.end(), [&](const auto& holder) {
           const auto& [key, gpus] = holder;
           if ((gpus & part.gpus) == 0) {
             return true;
           }
           const Attempt* const other = FindAttempt(key.first, key.second);
           return other != nullptr && MayShare(attempt, *other);
         });
}

// Whoever has to go is no company: the engine has not reckoned with him.
bool LiveWorld::MayShare(const Attempt& attempt, const Attempt& other) {
  if (attempt.stopping || other.stopping || attempt.sharing != other.sharing) {
    return false;
  }
  return attempt.sharing == Sharing::kCollocated ||
         (attempt.sharing == Sharing::kInterleaved && !attempt.group.empty() &&
          attempt.group == other.group);
}

void LiveWorld::StartAttempts() {
  if (failures_.starts_from(now_)) {
    return;
  }
  for (auto at = to_start_.begin(); at != to_start_.end();) {
    LiveJob& job = jobs_[Index(*at)];
    if (!MayStart(job)) {
      ++at;
      continue;
    }
    Attempt& attempt = job.attempts.back();
    for (std::size_t i = 0; i < attempt.parts.size(); ++i) {
      if (attempt.parts[i].state == PartState::kQueued) {
        SendStart(*at, attempt, i);
        attempt.parts[i].state = PartState::kSent;
        nodes_[Index(attempt.parts[i].node)].holders[{NumberOf(*at), attempt.number}] =
            attempt.parts[i].gpus;
      }
    }
    at = to_start_.erase(at);
  }
}

void LiveWorld::SendStart(JobId id, Attempt& attempt, std::size_t index) {
  const LiveJob& job = jobs_[Index(id)];
  const JobRecord& record = engine_.records()[Index(id)];
  const Part& part = attempt.parts[index];
  v1::ControllerMessage message;
  v1::StartAttempt& start = *message.mutable_start();
  *start.mutable_id() = IdOf(id, attempt.number);
  start.set_job_name(record.spec->name);
  *start.mutable_launch() = job.request->launch();
  for (int gpu = 0; gpu < kMaxGpusPerNode; ++gpu) {
    if ((part.gpus >> gpu & 1) != 0) {
      start.add_gpus(gpu);
    }
  }
  const bool per_gpu = job.request->launch().workers() == v1::LaunchSpec::PER_GPU;
  int workers = 0;
  for (std::size_t i = 0; i < attempt.parts.size(); ++i) {
    if (i == index) {
      start.set_first_rank(workers);
    }
    workers += per_gpu ? std::popcount(attempt.parts[i].gpus) : 1;
  }
  start.set_world_size(workers);
  start.set_node_rank(static_cast<int>(index));
  start.set_nodes(static_cast<int>(attempt.parts.size()));
  start.set_master_address(nodes_[Index(attempt.parts.front().node)].hello.address());
  start.set_master_port(MasterPort(id, attempt.number));
  start.set_grace(Milliseconds(GraceOf(job)));
  start.set_iterations(CountsWork(id) ? record.total_work : job.request->iterations());
  start.set_iterations_done(job.iterations_saved);
  start.set_rate(record.progress.rate * options_.time_scale);
  start.set_restart_cost_s(Seconds(record.progress.debt) / options_.time_scale);
  attempt.rate_told = record.progress.rate;
  *start.mutable_share() = ShareOf(record.grant, part.node);
  for (const auto& [other, gpus] : nodes_[Index(part.node)].holders) {
    if ((gpus & part.gpus) != 0) {
      v1::AttemptId& beside = *start.add_beside();
      beside.set_job(other.first);
      beside.set_attempt(other.second);
    }
  }
  Send(part.node, std::move(message));
}

// Whether there is more to say of its grant than its GPUs.
bool LiveWorld::HasTerms(JobId id, const Attempt& attempt) const {
  const Slices& slices = engine_.records()[Index(id)].grant.slices;
  return attempt.sharing != Sharing::kExclusive ||
         std::any_of(slices.begin(), slices.end(), [](const Slice& slice) {
           return !(slice.soft == Resources{}) || slice.loader_workers != 0;
         });
}

// Tells agents what has changed for those that run on. That the pace of a job is another one since
// others have come or gone is no action: it follows from theirs.
void LiveWorld::Tune() {
  for (const JobId id : sharing_) {
    const LiveJob& job = jobs_[Index(id)];
    if (job.request->launch().workers() == v1::LaunchSpec::EMULATED && !job.attempts.empty() &&
        job.attempts.back().rate_told != engine_.records()[Index(id)].progress.rate) {
      to_tune_.insert(id);
    }
  }
  for (const JobId id : std::exchange(to_tune_, {})) {
    std::vector<Attempt>& attempts = jobs_[Index(id)].attempts;
    if (!attempts.empty() && !attempts.back().stopping) {
      SendTune(id, attempts.back());
    }
  }
}

void LiveWorld::SendTune(JobId id, Attempt& attempt) {
  const JobRecord& record = engine_.records()[Index(id)];
  attempt.rate_told = record.progress.rate;
  for (const Part& part : attempt.parts) {
    if (part.state != PartState::kSent && part.state != PartState::kRunning) {
      continue;  // the order to start it will say all
    }
    v1::ControllerMessage message;
    v1::TuneAttempt& tune = *message.mutable_tune();
    *tune.mutable_id() = IdOf(id, attempt.number);
    tune.set_order(now_.time_since_epoch().count());
    *tune.mutable_share() = ShareOf(record.grant, part.node);
    tune.set_rate(record.progress.rate * options_.time_scale);
    Send(part.node, std::move(message));
  }
}

// Apart for the attempts of a cluster, and for clusters that share a machine.
int LiveWorld::MasterPort(JobId job, std::uint32_t attempt) const {
  const auto cluster = static_cast<std::uint64_t>(std::llround(options_.unix_zero * 1000));
  return kFirstMasterPort +
         static_cast<int>((cluster + NumberOf(job) * 61 + attempt) % kMasterPorts);
}

void LiveWorld::SendStop(JobId id, std::uint32_t attempt, NodeId node) {
  v1::ControllerMessage message;
  *message.mutable_stop()->mutable_id() = IdOf(id, attempt);
  message.mutable_stop()->set_grace(Milliseconds(GraceOf(jobs_[Index(id)])));
  Send(node, std::move(message));
}

void LiveWorld::Send(NodeId node, v1::ControllerMessage message) {
  if (const std::optional<std::uint64_t> connection = nodes_[Index(node)].connection) {
    message.set_epoch(options_.epoch);
    output_.Send(*connection, std::move(message));
  }
}

}  // namespace trainyard
