// SPDX-License-Identifier: Apache-2.0
// Facts and actions. What agents say is in live_agents.cc.
#include "live/live_world.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/earlier.h"
#include "base/try.h"
#include "engine/engine.h"
#include "live/calls/validation.h"
#include "live/jobs/job_request.h"
#include "profile/execution_model.h"
#include "service/calls.h"
#include "supervisor/data/data_store.h"

namespace trainyard::live {
namespace {

// Notes are the live world's own, whatever they name.
bool SpeaksOfNode(const model::Event& event) {
  return event.kind() != model::EventKind::kNoted && event.is_of_node();
}

bool SpeaksOfJob(const model::Event& event) {
  return event.kind() != model::EventKind::kNoted && event.is_of_job();
}

// Not where the policy shares GPUs or names them: jobs would have to leave the node for that. Nor
// where jobs are declined for good that do not find room in time.
bool ClosesSilentNodes(const engine::Configuration& configuration) {
  const May& may = configuration.traits.may;
  return !may.share && !may.name_gpus && !may.admit && !configuration.promises;
}

}  // namespace

Status CheckRules(const model::Rules& rules) {
  if (rules.end.source != model::EndRule::Source::kPredicted || rules.end.release_at_instant) {
    return InvalidArgument(
        "the preset registers ends that no live cluster knows of; expected sound mode, or "
        "replay-live --fast-forward");
  }
  return {};
}

LiveWorld::LiveWorld(LiveOptions options, const engine::Engine& engine, LiveOutput& output)
    : output_(output),
      engine_(engine),
      state_(std::move(options), engine.shared_configuration(), engine.numbers()),
      views_(state_, engine),
      notices_(state_, views_),
      change_log_(state_),
      messages_(state_, output_),
      calls_(state_, engine, views_, messages_, output_),
      judge_(state_, engine, [this](model::Event event) { Add(std::move(event)); }),
      meter_(state_, engine),
      overruns_(state_, engine),
      use_(state_, [this](model::Event event) { Add(std::move(event)); }) {
  calls_.SetFacts([this](model::Event event) { Add(std::move(event)); });
}

LiveWorld::~LiveWorld() = default;

// ----------------------------------------------------------------------------------------- inputs

void LiveWorld::OnCall(std::uint64_t call, v1::ClientRequest request) {
  inbox_.push_back({.kind = Input::Kind::kCall, .number = call, .request = std::move(request)});
}

void LiveWorld::OnCallGone(std::uint64_t call) {
  inbox_.push_back({.kind = Input::Kind::kCallGone, .number = call});  // behind the call itself
}

void LiveWorld::OnAgent(std::uint64_t connection, v1::AgentMessage message) {
  inbox_.push_back(
      {.kind = Input::Kind::kAgent, .number = connection, .message = std::move(message)});
}

void LiveWorld::OnAgentGone(std::uint64_t connection) {
  inbox_.push_back({.kind = Input::Kind::kAgentGone, .number = connection});
}

void LiveWorld::OnNoMoreSubmits() { inbox_.push_back({.kind = Input::Kind::kNoMoreSubmits}); }

Status LiveWorld::OnConfiguration(const std::string& note) {
  ASSIGN_OR_RETURN(const engine::SharedConfiguration next,
                   engine_.ReadConfiguration(note, *state_.configuration));
  RETURN_IF_ERROR(CheckJobs(state_, *next));
  inbox_.push_back({.kind = Input::Kind::kConfiguration, .configuration = next->note});
  return {};
}

bool LiveWorld::Absorb(std::vector<model::Event> ends) {
  batch_ = {};
  calls_.Begin();
  judge_.Begin();
  for (model::Event& end : ends) {
    Add(std::move(end));
  }
  if (fresh_) {
    for (std::size_t i = 0; i < state_.nodes.size(); ++i) {
      Add({.at = state_.now, .fact = model::fact::NodeDown{.node = NodeAt(i)}});
    }
  }
  while (!inbox_.empty()) {
    Input input = std::move(inbox_.front());
    inbox_.pop_front();
    Take(input);
  }
  LookAtAgents();
  for (const NodeId node : state_.nodes.PastDeadline(state_.now)) {
    Add({.at = state_.now, .fact = model::fact::NodeDrained{.node = node}});
  }
  for (const JobId job : judge_.JudgeDue()) {
    DropGone(job);
  }
  judge_.NoteAllThatRunWell();
  for (const JobId job : state_.metrics.Due(state_.now)) {
    TellMetrics(job);
  }
  for (model::Event& fact : overruns_.TakeFacts()) {
    Add(std::move(fact));
  }
  for (model::fact::Measured& fact : meter_.TakeFacts()) {
    Add({.at = state_.now, .fact = std::move(fact)});
  }
  Conclude();
  return !batch_.events.empty();
}

bool LiveWorld::AbsorbOutage(std::vector<model::Event> first) {
  batch_ = {};
  calls_.Begin();
  judge_.Begin();
  if (state_.attempts.present().empty()) {
    return false;
  }
  for (model::Event& event : first) {
    Add(std::move(event));
  }
  for (std::size_t i = 0; i < state_.nodes.size(); ++i) {
    const NodeId node = NodeAt(i);
    const bool serves = state_.nodes[node].alive && !state_.nodes[node].drained;
    if (serves || state_.nodes[node].finish_until) {
      Add({.at = state_.now, .fact = model::fact::NodeDrained{.node = node}});
    }
    if (serves) {
      Add({.at = state_.now, .fact = model::fact::NodeUndrained{.node = node}});
    }
  }
  Conclude();
  return !batch_.events.empty();
}

void LiveWorld::Take(Input& input) {
  switch (input.kind) {
    case Input::Kind::kCall:
      return calls_.Take(input.number, input.request);
    case Input::Kind::kCallGone:
      return calls_.Drop(input.number);
    case Input::Kind::kAgent:
      return TakeAgent(input.number, input.message);
    case Input::Kind::kAgentGone:
      return TakeAgentGone(input.number);
    case Input::Kind::kNoMoreSubmits:
      return Add({.at = state_.now, .fact = model::fact::NoMoreSubmits{}});
    case Input::Kind::kConfiguration:
      return Add({.at = state_.now,
                  .fact = model::fact::Configured{.note = std::move(input.configuration)}});
  }
}

model::Batch LiveWorld::Next(std::optional<TimePoint> wake_at) {
  CHECK(!batch_.events.empty() || (wake_at && *wake_at <= state_.now));
  batch_.now = state_.now;
  return std::move(batch_);
}

std::optional<TimePoint> LiveWorld::next_timer() const {
  std::optional<TimePoint> next =
      base::Earlier(state_.nodes.next_end(), state_.metrics.next_timer());
  next = base::Earlier(next, state_.nodes.next_deadline());
  if (ClosesSilentNodes(*state_.configuration)) {
    next = base::Earlier(next, state_.nodes.next_silence());
  }
  next = base::Earlier(base::Earlier(next, judge_.next_timer()), overruns_.next_timer());
  return state_.start_queue.jobs().empty()
             ? next
             : base::Earlier(next, state_.failures.starts_from(state_.now));
}

// Nodes whose leases are over are lost. Where an agent is only silent its jobs may run on, of which
// nobody can say that they have ended before that; others go elsewhere.
void LiveWorld::LookAtAgents() {
  for (const NodeId node : state_.nodes.Expired(state_.now)) {
    if (const std::optional<std::uint64_t> connection = state_.nodes[node].connection) {
      output_.Close(*connection);
      TakeAgentGone(*connection);
    }
    judge_.NoteAgentLost(node);
    change_log_.NoteLost(node);
    use_.NoteNodeGone(node);
    Add({.at = state_.now, .fact = model::fact::NodeDown{.node = node}});
  }
  if (!ClosesSilentNodes(*state_.configuration)) {
    return;
  }
  for (const NodeId node : state_.nodes.FallenSilent(state_.now)) {
    change_log_.NoteSilent(node);
    Add({.at = state_.now, .fact = model::fact::NodeCordoned{.node = node, .until = kUntilHeard}});
  }
}

// ------------------------------------------------------------------------------------------ facts

void LiveWorld::Add(model::Event event) {
  Note(event);
  batch_.events.push_back(std::move(event));
}

void LiveWorld::Note(const model::Event& event) {
  if (!event.others().empty()) {
    return model::ForEachJob(event, [this](const model::Event& one) { Note(one); });
  }
  fresh_ = false;
  if (SpeaksOfJob(event)) {
    state_.touched.jobs.Add(event.job());
  }
  notices_.Note(event);
  state_.history.Note(event, state_.jobs, state_.cluster);
  state_.changes.Note(event);
  if (SpeaksOfNode(event)) {
    state_.nodes.Note(event);
  } else if (SpeaksOfJob(event)) {
    state_.jobs.Note(event);
  }
  switch (event.kind()) {
    case model::EventKind::kSubmitted:
    case model::EventKind::kArraySubmitted:
      return state_.attempts.Resize(state_.jobs.size());
    case model::EventKind::kEnded:
    case model::EventKind::kFailed:
    case model::EventKind::kCancelled:
      state_.metrics.Drop(event.job());
      state_.changes.Drop(event.job());
      meter_.Drop(event.job());
      return calls_.AnswerVerdict(event.job());  // there will be no other
    case model::EventKind::kReported:
      return state_.metrics.Note(event.As<model::fact::Reported>(), event.at);
    case model::EventKind::kMeasured:
      ++state_.measured_facts;
      return;
    case model::EventKind::kNodeDown:
      return Fence(event.node());
    case model::EventKind::kNoted:
      if (const auto use = NoteAs<UseNote>(event); use && state_.jobs.has(use->job)) {
        state_.touched.jobs.Add(use->job);
        state_.usage.Note(*use, event.at, *state_.jobs[use->job].request, state_.cluster);
      }
      if (const auto steps = NoteAs<StepsNote>(event); steps && state_.jobs.has(steps->job)) {
        state_.touched.jobs.Add(steps->job);
        state_.steps.Note(*steps);
      }
      return state_.jobs.Note(event);
    case model::EventKind::kSwitched:
      return state_.switches.Note(event.As<model::fact::Switched>(), event.at);
    case model::EventKind::kConfigured: {
      Result<engine::SharedConfiguration> next = engine_.ReadConfiguration(
          event.As<model::fact::Configured>().note, *state_.configuration);
      CHECK(next.ok());  // it has been read before
      state_.history.NoteConfigured(*state_.configuration, *next.value(), event.at);
      change_log_.NoteConfigured(*next.value(), event.at);
      state_.configurations = state_.configurations->With(*state_.configuration, *next.value());
      state_.jobs.Respecify(*next.value(), *state_.configuration);
      return Adopt(std::move(next).value());
    }
    default:
      return;
  }
}

// A node that is down runs nothing: its agent has stopped what it had when its lease ran out.
void LiveWorld::Fence(NodeId node) {
  state_.occupancy.Clear(node);
  state_.attempts.SetUnseen(true);
  for (const JobId job : state_.attempts.Fence(node)) {
    judge_.Drop(job);  // what its other workers died of is the loss of this one
    DropGone(job);
  }
  state_.attempts.SetUnseen(false);
}

void LiveWorld::TellMetrics(JobId job) {
  if (std::optional<model::fact::Reported> fact = state_.metrics.Untold(job)) {
    Add({.at = state_.now, .fact = *std::move(fact)});
  }
}

void LiveWorld::SortFacts() {
  const auto place = [](const model::Event& event) {
    const bool by_job = !model::MayBeOfSeveral(event.kind());
    return std::pair(model::TakingOrder(event.kind()), by_job ? event.job() : JobId{});
  };
  std::stable_sort(
      batch_.events.begin(), batch_.events.end(),
      [&place](const model::Event& a, const model::Event& b) { return place(a) < place(b); });
}

// Adds what follows from the facts, as facts, in the order in which a replay will see them.
void LiveWorld::Conclude() {
  SortFacts();
  for (const model::Event& event : batch_.events) {
    state_.failures.Take(event);
  }
  std::vector<model::Event> conclusions = judge_.Conclusions();
  while (!conclusions.empty()) {
    for (model::Event& event : conclusions) {
      Add(std::move(event));
    }
    conclusions = judge_.Conclusions();
  }
  SortFacts();
  change_log_.Note(batch_.events);
}

// ---------------------------------------------------------------------------------------- actions

void LiveWorld::Note(const model::Action& action) {
  state_.touched.jobs.Add(action.job);
  notices_.Note(action);
  state_.history.Note(action, state_.now, state_.cluster);
  state_.usage.Note(action, state_.now, *state_.jobs[action.job].request, state_.cluster);
  switch (action.kind) {
    case model::ActionKind::kAdmit:
      return calls_.AnswerVerdict(action.job);
    case model::ActionKind::kReject:
      End(action.job);
      state_.jobs[action.job].reason = action.reason;
      return calls_.AnswerVerdict(action.job);
    case model::ActionKind::kRelease:
      End(action.job);
      if (!action.reason.empty()) {
        state_.jobs[action.job].reason = action.reason;
      }
      return StopAll(action.job);
    case model::ActionKind::kPreempt:
      return StopAll(action.job);
    case model::ActionKind::kResize:
    case model::ActionKind::kMigrate:
      StopAll(action.job);
      return Open(action);
    case model::ActionKind::kLaunch:
      return Open(action);
    case model::ActionKind::kTune:
      state_.attempts.Retune(action);
      to_tune_.insert(action.job);
      return;
    case model::ActionKind::kPace:
      state_.attempts.Retune(action);
      if (state_.jobs[action.job].is_emulated()) {
        to_tune_.insert(action.job);
      }
      return;
  }
}

// The job has ended. The engine may have found the end itself.
void LiveWorld::End(JobId job) {
  state_.failures.Forget(job);
  state_.changes.Drop(job);
  if (!state_.jobs[job].ending) {
    state_.jobs.End(job, state_.now);
    state_.metrics.Drop(job);
    meter_.Drop(job);
  }
}

void LiveWorld::Open(const model::Action& action) {
  state_.jobs[action.job].reason.clear();  // of an attempt before
  if (!action.grant.running) {
    return state_.occupancy.Hold(action.job);
  }
  state_.occupancy.Unhold(action.job);
  state_.start_queue.Add(action.job);
  state_.attempts.Open(action, state_.now, !restoring_);
  if (!restoring_) {
    meter_.Open(action);
  }
}

// The job has lost its GPUs or has ended: stops all of its attempts.
void LiveWorld::StopAll(JobId job) {
  state_.start_queue.Remove(job);
  state_.occupancy.Unhold(job);
  to_tune_.erase(job);
  messages_.Stop(job, state_.attempts.Stop(job, state_.now));
  DropGone(job);
}

void LiveWorld::DropGone(JobId job) {
  const std::vector<LiveAttempt>& attempts = state_.attempts.Of(job);
  const int gpus = attempts.empty() ? 0 : attempts.front().gpus();
  const bool had_gone = state_.attempts[job].stop_took.has_value();
  messages_.Forget(job, state_.attempts.DropGone(job, state_.now));
  if (const auto& took = state_.attempts[job].stop_took; took && !had_gone) {
    meter_.NoteStopped(job, gpus, *took);
  }
}

void LiveWorld::Answer() {
  StartAttempts();
  Tune();
  messages_.SendForgets();
  views_.Publish();
  calls_.Answer();
}

void LiveWorld::StartAttempts() {
  if (state_.failures.starts_from(state_.now)) {
    return;
  }
  const std::set<JobId> queued = state_.start_queue.jobs();
  for (const JobId job : queued) {
    if (!HasData(job) || !state_.start_queue.MayStart(job)) {
      continue;
    }
    LiveAttempt& attempt = state_.attempts.Of(job).back();
    for (std::size_t i = 0; i < attempt.parts.size(); ++i) {
      Part& part = attempt.parts[i];
      if (part.state == PartState::kQueued) {
        messages_.Start(job, attempt, i);
        part.state = PartState::kSent;
        state_.occupancy.Enter(part.node, {state_.numbers.Of(job), attempt.number}, part.gpus);
      }
    }
    state_.start_queue.Remove(job);
    meter_.Start(job);
  }
}

// Whether the nodes of the job's last attempt have what they keep of its data set; asks the agents
// to fetch it.
bool LiveWorld::HasData(JobId job) {
  if (!state_.jobs[job].request->has_data_set() ||
      !supervisor::IsFetched(state_.jobs[job].request->data_set())) {
    return true;
  }
  LiveAttempt& attempt = state_.attempts.Of(job).back();
  bool has_all = true;
  for (Part& part : attempt.parts) {
    const LiveNode& node = state_.nodes[part.node];
    if (part.state != PartState::kQueued || !node.connection || node.data.cache_mib() == 0) {
      continue;  // the start queue sees to it, or the node keeps no data sets
    }
    if (part.data == PartData::kUnasked) {
      part.data = PartData::kFetching;
      part.fetched = 0;
      messages_.Fetch(job, attempt, part.node);
    }
    has_all = has_all && part.data == PartData::kReady;
  }
  return has_all;
}

// Tells agents what has changed for the attempts that run on.
void LiveWorld::Tune() {
  for (const JobId job : std::exchange(to_tune_, {})) {
    if (const LiveAttempt* const attempt = state_.attempts[job].wanted()) {
      messages_.Tune(job, *attempt);
    }
  }
}

// --------------------------------------------------------------------------------------- withheld

// While the journal cannot be written, the world keeps the leases of its agents going, and does and
// says nothing else.

void LiveWorld::Withhold() { withheld_ = std::make_unique<Withheld>(); }

Status LiveWorld::Perform(TimePoint now, std::span<const model::Action> actions) {
  if (withheld_) {
    withheld_->actions.assign(actions.begin(), actions.end());
    withheld_->answers = calls_.TakeAnswers();
    withheld_->at = now;
    return {};
  }
  for (const model::Action& action : actions) {
    Note(action);
  }
  notices_.Tell();
  change_log_.Tell(false);
  Answer();
  return {};
}

void LiveWorld::Release() {
  const std::unique_ptr<Withheld> withheld = std::move(withheld_);
  const TimePoint now = std::exchange(state_.now, withheld->at);  // as a replay will see it
  for (const model::Action& action : withheld->actions) {
    Note(action);
  }
  notices_.Tell();
  change_log_.Tell(false);
  state_.now = now;
  calls_.GiveBack(std::move(withheld->answers));
  Answer();
}

// Reports are kept for later, the newest of each kind.
void LiveWorld::Stall(const std::string& why) {
  std::deque<Input> kept;
  std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint32_t, int>, std::size_t> reports;
  for (Input& input : inbox_) {
    if (input.kind == Input::Kind::kCall && !input.request.has_logs() &&
        service::FamilyOf(input.request.kind_case()) != service::CallFamily::kReading) {
      calls_.Refuse(input.number, {ErrorCode::kResourceExhausted,
                                   "the controller cannot write its journal (" + why +
                                       "); it takes nothing and starts nothing until it can"});
      continue;
    }
    if (input.kind == Input::Kind::kCall || input.kind == Input::Kind::kCallGone) {
      Take(input);
      continue;
    }
    if (input.kind == Input::Kind::kAgent && TakeWhileWithheld(input)) {
      continue;
    }
    if (input.message.has_attempt()) {
      const v1::AttemptReport& report = input.message.attempt();
      const auto [at, is_new] =
          reports.try_emplace({input.number, report.id().job(), report.id().attempt(),
                               static_cast<int>(report.state())},
                              kept.size());
      if (!is_new) {
        kept[at->second] = std::move(input);
        continue;
      }
    }
    kept.push_back(std::move(input));
  }
  inbox_ = std::move(kept);
  calls_.Answer();
}

// Takes what must be taken of a message while the journal cannot be written. True: the message is
// done with.
bool LiveWorld::TakeWhileWithheld(const Input& input) {
  std::optional<NodeId> node = state_.nodes.At(input.number);
  if (const auto welcomed = withheld_->welcomed.find(input.number);
      welcomed != withheld_->welcomed.end()) {
    node = welcomed->second;
  }
  const v1::AgentMessage& message = input.message;
  if (message.has_hello() && !node && state_.nodes.CheckJoin(message.hello(), false).ok()) {
    node = state_.nodes.Named(message.hello().node());
    withheld_->welcomed[input.number] = *node;
    messages_.Welcome(input.number);
  }
  if (!node) {
    return false;
  }
  state_.nodes.Hear(*node, state_.now);
  if (!message.has_heartbeat()) {
    return false;
  }
  messages_.AnswerTo(message.heartbeat(), input.number);
  return true;
}

// -------------------------------------------------------------------------------------- restoring

Status LiveWorld::Restore(const model::Batch& batch) {
  restoring_ = true;
  state_.now = batch.now;
  for (const model::Event& event : batch.events) {
    if (event.kind() == model::EventKind::kConfigured) {
      RETURN_IF_ERROR(engine_.ReadConfiguration(event.As<model::fact::Configured>().note,
                                                *state_.configuration));
    }
    const bool submit = event.kind() == model::EventKind::kSubmitted ||
                        event.kind() == model::EventKind::kArraySubmitted;
    const auto is_missing = [this](NodeId node) { return Index(node) >= state_.nodes.size(); };
    const auto* const barred = std::get_if<model::fact::Barred>(&event.fact);
    if (is_missing(event.node()) ||
        (barred != nullptr &&
         std::any_of(barred->nodes.begin(), barred->nodes.end(), is_missing)) ||
        (submit && Index(event.job()) != state_.jobs.size()) ||
        (!submit && SpeaksOfJob(event) && !state_.jobs.has(event.job())) ||
        (!event.others().empty() && !state_.jobs.has(event.others().back()))) {
      return BadInput("the journal speaks of job " +
                      std::to_string(state_.numbers.Of(event.job())) + " and node " +
                      std::to_string(Index(event.node())) +
                      ", which are not there; expected the cluster and journal of this controller");
    }
    Note(event);
    state_.failures.Take(event);
  }
  change_log_.Note(batch.events);
  return {};
}

void LiveWorld::Restore(std::span<const model::Action> actions) {
  for (const model::Action& action : actions) {
    Note(action);
  }
  notices_.Tell();
  change_log_.Tell(true);
}

void LiveWorld::Restored(TimePoint now) {
  restoring_ = false;
  state_.now = now;
  state_.nodes.Restart(now);
  calls_.DropAnswers();
  messages_.DropForgets();
  to_tune_.clear();  // agents hear of it when they have said hello
  const std::set<JobId> present = state_.attempts.present();
  for (const JobId job : present) {
    if (state_.jobs[job].ending) {  // agents report what may be left of the job as strays
      state_.attempts.Forget(job);
    }
  }
  views_.TouchAll();
  views_.Publish();
}

// As submitted: the engine's specification has the stages that have been measured, and jobs that
// share GPUs take turns by those that all of them have been told.
void LiveWorld::StateStages(LiveJob& job) const {
  if (job.ending || !profile::StatesStages(*job.spec)) {
    return;
  }
  const Result<model::JobDraft> draft = DraftOf(*job.request, job.submitted, state_.cluster);
  if (!draft.ok()) {
    return;
  }
  JobTraits traits = model::PartOf<JobTraits>(*job.spec);
  traits.stages = draft.value().traits.stages;
  const auto spec = std::make_shared<JobSpec>(*job.spec);
  spec->traits = std::make_shared<const JobTraits>(std::move(traits));
  const bool bound = state_.configuration->Bind(*spec).ok();  // or a profile's
  if (bound && profile::StatesStages(*spec)) {
    job.spec = spec;
  }
}

void LiveWorld::SerializeJob(JobId job, const std::shared_ptr<const JobSpec>& spec,
                             StateStream& state) {
  state_.jobs.SerializeJob(job, spec, state);
  if (state.reading() && state.good()) {
    StateStages(state_.jobs[job]);
  }
  state_.attempts.SerializeJob(job, state_.nodes.size(), state);
  state_.metrics.SerializeJob(job, state);
  if (state.job_fields() >= model::kFirstRequestPlace) {
    state_.usage.SerializeJob(job, state);
  }
  if (state.job_fields() >= model::kFirstPlaceWithSteps) {
    state_.steps.SerializeJob(job, state);
  }
  if (state.reading() && state.good() && state_.attempts[job].wanted() != nullptr) {
    state_.start_queue.Add(job);
  }
}

std::vector<Section> LiveWorld::Sections(int format) {
  constexpr int kFormatWithCounts = 9;  // of attempts whose supervisors had gone, on each node
  // Stage times of models, which are measured anew.
  using FormerStages = std::map<std::pair<std::string, int>, std::vector<double>>;
  const auto former = std::make_shared<FormerStages>();
  const bool has_counts = format <= kFormatWithCounts;
  return {
      {.name = "nodes", .serialize = [this](StateStream& to) { to(state_.nodes); }},
      {.name = "occupancy", .serialize = [this](StateStream& to) { to(state_.occupancy); }},
      {.name = "names", .serialize = [this](StateStream& to) { to(state_.jobs, fresh_); }},
      {.name = "failures",
       .serialize = [this,
                     has_counts](StateStream& to) { state_.failures.Serialize(to, has_counts); }},
      {.name = "stages", .serialize = [former](StateStream& to) { to(*former); }, .until = 7},
      {.name = "changes", .serialize = [this](StateStream& to) { to(state_.changes); }, .since = 8},
      {.name = "history",
       .serialize = [this](StateStream& to) { to(state_.history, notices_); },
       .since = 9},
      {.name = "switches",
       .serialize = [this](StateStream& to) { to(state_.switches); },
       .since = 12},
      {.name = "configurations",
       .serialize =
           [this](StateStream& to) {
             auto history = std::make_shared<ConfigurationHistory>(*state_.configurations);
             to(*history);
             state_.configurations = std::move(history);
           },
       .since = 12},
      {.name = "usage",
       .serialize = [this](StateStream& to) { state_.usage.SerializeGpus(to); },
       .since = 12},
      {.name = "cpu-usage",
       .serialize = [this](StateStream& to) { state_.usage.SerializeCpus(to); },
       .since = 12},
      {.name = "finishing",
       .serialize = [this](StateStream& to) { state_.nodes.SerializeFinishing(to); },
       .since = 12},
      {.name = "holders",
       .serialize = [this](StateStream& to) { state_.changes.SerializeHolders(to); },
       .since = 9},
  };
}

}  // namespace trainyard::live
