// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <regex>

#include "faults/world.h"
#include "model/job_numbers.h"

namespace trainyard::faults {
namespace {

// The job that the message is about; 0: none.
std::uint64_t JobOf(const v1::ControllerMessage& message) {
  return message.has_start()    ? message.start().id().job()
         : message.has_stop()   ? message.stop().id().job()
         : message.has_forget() ? message.forget().id().job()
         : message.has_fetch()  ? message.fetch().id().job()
                                : message.tune().id().job();
}

}  // namespace

// Nothing twice: no GPU for two, no job in two attempts. What it is told of its data set is there.
void World::CheckStart(int node, const v1::StartAttempt& start) {
  if (options_.verbose) {
    Trace(fmt::format(
        "job {} attempt {} starts on n{}{}", start.id().job(), start.id().attempt(), node,
        start.has_turns() ? fmt::format(" of {} GPUs from {}, with turns at place {}",
                                        start.gpus_size(), start.gpus(0), start.turns().position())
                          : std::string()));
  }
  const std::string wrong = witness_.Begin(
      node, {start.id().job(), start.id().attempt()}, {start.gpus().begin(), start.gpus().end()},
      [this](const AttemptKey& a, const AttemptKey& b) { return MayShare(a, b); });
  if (!wrong.empty()) {
    Violated(wrong);
  }
  if (start.has_data_set()) {
    const bool local = !start.data_folder().empty();
    ++(local ? result_.local_starts : result_.home_starts);
    if (local && !stores_[static_cast<std::size_t>(node)]->Has(start.data_set().name())) {
      Violated(fmt::format("job {} is told of a copy of {} that n{} has not", start.id().job(),
                           start.data_set().name(), node));
    }
  }
  double& known = progress_told_[start.id().job()];
  if (start.iterations_done() < known || start.iterations_done() > checkpoints_[start.id().job()]) {
    Violated(fmt::format("job {} is started with {} done, after {}; {} are saved", start.id().job(),
                         start.iterations_done(), known, checkpoints_[start.id().job()]));
  }
  known = start.iterations_done();
  const std::uint64_t number = start.id().job();
  const Client* const client = ClientOf(number);
  if (client != nullptr && client->last[number - *client->number] == v1::COMPLETED) {
    Violated(fmt::format("job {} is started after its completion", number));
  }
  Found(book_.Begins(number, start.id().attempt()));
}

// Two attempts may be beside one another if the engine granted it for one and the same time.
void World::NoteGrants() {
  if (!controller_->journal_error().empty()) {
    return;  // what it has decided last is not true yet
  }
  ++steps_;
  const std::span<const model::JobRecord> records = controller_->engine().records();
  for (std::size_t i = 0; shares_gpus_ && i < records.size(); ++i) {
    const Grant& grant = records[i].grant;
    if (grant.gpus == 0 || grant.sharing == Sharing::kExclusive) {
      continue;
    }
    const std::uint32_t attempt = controller_->world().StatusOf(JobAt(i)).attempt();
    Granted& granted = granted_[{model::JobNumbers::Counted().Of(JobAt(i)), attempt}];
    granted.first_step = granted.first_step == 0 ? steps_ : granted.first_step;
    granted.last_step = steps_;
    if (granted.grant != grant) {
      granted.since = now_;
    }
    granted.grant = grant;
  }
}

bool World::MayShare(AttemptKey one, AttemptKey other) const {
  const auto a = granted_.find(one);
  const auto b = granted_.find(other);
  if (a == granted_.end() || b == granted_.end() || a->second.last_step < b->second.first_step ||
      b->second.last_step < a->second.first_step) {
    return false;
  }
  const Grant& first = a->second.grant;
  return first.sharing == b->second.grant.sharing &&
         (first.sharing == Sharing::kCollocated || first.group == b->second.grant.group);
}

// ------------------------------------------------------------------------------------- controller

profile::MeasuredBook World::MeasuredBefore() const {
  profile::MeasuredBook book;
  for (int i = 0; i < 3 && options_.bug == PlantedBug::kOtherMeasured && controller_life_ > 1;
       ++i) {
    (void)book.Add({.model = "m0"}, profile::Measure::kRestart, 100);
  }
  return book;
}

void World::StartController() {
  disk_.Open();
  ++controller_life_;
  // The clock of its machine has been set meanwhile.
  clock_offset_ = FaultsGoOn() ? Between(-seconds(30), seconds(30)) : clock_offset_;
  live::LiveOptions live{.heartbeat = kHeartbeat,
                         .lease = kLease,
                         .grace = seconds(20),
                         .margin = seconds(5),
                         .epoch = disk_.epoch(),
                         .audit = &trail_};
  if (options_.bug == PlantedBug::kDeadAtOnce) {
    live.lease = seconds(10);
    live.grace = live.margin = seconds(0);
  }
  UpgradeProgram();
  const std::shared_ptr<engine::Configuration> configuration = parts_.Configure(cluster_);
  configuration->rules = {};
  configuration->overheads = {};
  const FaultConfiguration first{.policy = policy_name_, .placement = placement_name_};
  live::ControllerSetup setup{
      .engine = {.configuration =
                     configurations_ == nullptr ? configuration : configurations_->Make(first),
                 .measured = MeasuredBefore(),
                 .observer = &accounts_,
                 .configurations = configurations_.get()},
      .live = live,
      .snapshots = snapshots_,
      .former_program = written_by_ == snapshots_.program ? "" : written_by_};
  Result<std::unique_ptr<live::Controller>> opened =
      live::Controller::Open(setup, disk_, *this, ControllerTime());
  if (!opened.ok()) {
    return Violated("the controller does not start again: " + opened.error().message);
  }
  controller_ = std::move(opened).value();
  controller_since_ = now_;
  heard_.assign(heard_.size(), std::max(ControllerTime(), controller_->engine().now()));
  Found(trail_.wrong());
  if (controller_->restart().difference.empty()) {
    accounts_.Adopt(controller_->engine().records(), controller_->engine().now());
  } else {
    accounts_.BeginAnew(controller_->engine().records(), controller_->engine().now());
  }
  alive_at_start_.clear();
  for (const v1::NodeStatus& node : controller_->world().NodeStatuses()) {
    alive_at_start_.push_back(node.up());
  }
  setup.engine.observer = nullptr;
  NoteUpgrade(setup);
  CompareWithReplay(setup);
  NoteGrants();
  Trace(fmt::format("controller {} starts with {}, {} jobs", controller_life_, policy_name_,
                    controller_->world().jobs()));
  for (const Client& client : clients_) {
    if (client.number && *client.number + client.tasks() - 1 > controller_->world().jobs()) {
      Violated(fmt::format("acknowledged job {} is lost", *client.number));
    }
  }
  planned_wake_ = kEndOfTime;
  StepSoon();
  if (FaultsGoOn() && Chance(0.3)) {
    disk_.FailIn(static_cast<int>(1 + Pick(40)), Chance(0.5));
  }
}

// Another program may start on the state: it decides otherwise than the one before would have. It
// must be able to write that it does.
void World::UpgradeProgram() {
  constexpr unsigned kEvery = 2;
  if (configurations_ == nullptr) {
    return;
  }
  if (controller_life_ > 1 && upgrades_() % kEvery == 0 && !disk_.is_full()) {
    configurations_->Upgrade();
  }
  snapshots_.program = configurations_->program();
}

// What has been written stays as it is, and the same program needs no leave to go through it again.
void World::NoteUpgrade(live::ControllerSetup& setup) {
  if (!setup.former_program.empty()) {
    Trace(fmt::format("{} follows {}: {}", snapshots_.program, setup.former_program,
                      controller_->restart().difference));
    result_.upgrades += controller_->restart().difference.empty() ? 0 : 1;
    ++upgraded_;
  }
  written_by_ = snapshots_.program;
  setup.former_program.clear();
}

// Of what a snapshot and the rest of the journal give, nothing may differ from what the whole
// journal gives.
void World::CompareWithReplay(const live::ControllerSetup& setup) {
  static const std::regex kOfOtherPrograms(" program |as the journal before it is gone");
  for (const std::string& remark : controller_->restart().remarks) {
    if (upgraded_ == 0 || !std::regex_search(remark, kOfOtherPrograms)) {
      Violated(remark);
    }
  }
  if (controller_->restart().snapshot == 0) {
    return;
  }
  ++result_.resumed;
  if (snapshots_.compact) {
    return;  // the whole journal is not there any more
  }
  PretendedDisk whole = disk_;
  whole.disk().DropSnapshots();
  whole.FailIn(0, false);
  const Result<std::unique_ptr<live::Controller>> replayed =
      live::Controller::Open(setup, whole, *this, ControllerTime());
  if (!replayed.ok()) {
    return Violated("the whole journal: " + replayed.error().message);
  }
  if (replayed.value()->digest() != controller_->digest() ||
      replayed.value()->StateDigest() != controller_->StateDigest()) {
    Violated(fmt::format("the snapshot at entry {} and {} entries give another state",
                         controller_->restart().snapshot, controller_->restart().replayed));
  }
  for (std::size_t i = 0; i < controller_->world().jobs(); ++i) {
    const v1::JobStatus one = controller_->world().StatusOf(JobAt(i));
    const v1::JobStatus other = replayed.value()->world().StatusOf(JobAt(i));
    // Of attempts that are still being stopped, and of nodes that have come back, agents tell.
    const auto without_nodes = [](const v1::JobStatus& status) {
      static const std::regex kNodes("; (drained|down): [^;]*");
      return std::regex_replace(status.reason(), kNodes, "");
    };
    if (one.state() == v1::WAITING && other.state() == v1::WAITING &&
        without_nodes(one) != without_nodes(other)) {
      Violated(fmt::format("job {} waits for '{}' from a snapshot, for '{}' from the journal",
                           i + 1, one.reason(), other.reason()));
    }
    if (one.attempt() != other.attempt() || one.failures() != other.failures() ||
        one.exit_code() != other.exit_code() || one.ended() != other.ended() ||
        one.request().gpus() != other.request().gpus()) {
      Violated(fmt::format("job {} is {} from a snapshot, {} from the journal", i + 1,
                           one.ShortDebugString(), other.ShortDebugString()));
    }
  }
}

void World::CrashController() {
  if (!controller_) {
    return;
  }
  Trace("controller crashes");
  ++result_.controller_crashes;
  CountStates(disk_.has_crashed() ? FaultKind::kCrashInWrite : FaultKind::kControllerCrash, {});
  controller_.reset();
  accounts_.Lose();
  parted_by_.reset();
  calls_.clear();
  disk_.FailIn(0, false);
  for (auto& [number, connection] : connections_) {
    if (connection.open_there) {
      Break(number, true);
    }
  }
  After(Chance(0.1) ? Between(seconds(10), seconds(200)) : Between(milliseconds(200), seconds(8)),
        [this] { StartController(); });
}

void World::StepSoon() {
  if (!step_planned_ && controller_) {
    step_planned_ = true;
    After(Between(Duration{0}, milliseconds(8)), [this, life = controller_life_] {
      step_planned_ = false;
      StepController(life);
    });
  }
}

void World::StepController(std::uint64_t life) {
  if (!controller_ || life != controller_life_) {
    StepSoon();
    return;
  }
  if (const Status status = controller_->Step(ControllerTime()); !status.ok()) {
    Violated("the controller gives up: " + status.error().message);
    return CrashController();
  }
  if (disk_.has_crashed()) {
    return CrashController();
  }
  constexpr std::uint64_t kStepsPerView = 200;
  if (++controller_steps_ % kStepsPerView == 0) {
    if (const std::string why = controller_->WhyViewIsStale(); !why.empty()) {
      Violated("what clients read is not what is so: " + why);
    }
  }
  NoteGrants();
  CheckSwitches();
  CheckConfiguration();
  CheckStatuses();
  CheckDecisions();
  CheckNodesAlive();
  if (const std::optional<TimePoint> wake = controller_->next_wakeup();
      wake && *wake < planned_wake_) {
    planned_wake_ = *wake;
    After(std::max(Duration{0}, *wake - ControllerTime()), [this, life, at = *wake] {
      if (life == controller_life_ && planned_wake_ == at) {
        planned_wake_ = kEndOfTime;
        StepController(life);
      }
    });
  }
}

// In order, but now and then twice, or so late that others overtake it.
void World::Deliver(TimePoint& last, const std::function<void()>& deliver) {
  const TimePoint first = last;
  last = std::max(last, now_ + Delay());
  After(last - now_, deliver);
  if (FaultsGoOn() && Chance(0.03)) {
    After(std::max(first, now_) - now_ + Between(milliseconds(1), seconds(5)), deliver);
  }
  if (FaultsGoOn() && Chance(0.03)) {
    last = std::max(first, now_);  // the next one may be sooner
  }
}

void World::Send(std::uint64_t number, v1::ControllerMessage message) {
  const auto at = connections_.find(number);
  if (at == connections_.end() || at->second.silent || !at->second.open_there) {
    return;
  }
  Connection& connection = at->second;
  const auto deliver = [this, number, message = std::move(message)] {
    const auto to = connections_.find(number);
    if (to == connections_.end() || to->second.silent || !to->second.open_here) {
      return;
    }
    const auto node = static_cast<std::size_t>(to->second.node);
    if (agents_[node] && links_[node] == number) {
      result_.coverage.Arrived(number, message, StarterOfJob(JobOf(message)));
      agents_[node]->OnMessage(message, AgentTime(node));
      AgentTimer(to->second.node);
    }
  };
  Deliver(connection.last_down, deliver);
}

// One side sees the end at once, the other later, and what is under way is lost.
void World::Break(std::uint64_t number, bool by_controller) {
  const auto at = connections_.find(number);
  if (at == connections_.end()) {
    return;
  }
  at->second.silent = true;
  (by_controller ? at->second.open_there : at->second.open_here) = false;
  After(Between(milliseconds(1), seconds(15)), [this, number] {
    const auto broken = connections_.find(number);
    if (broken == connections_.end()) {
      return;
    }
    const Connection connection = broken->second;
    connections_.erase(broken);
    if (connection.open_there && controller_ && connection.controller_life == controller_life_) {
      controller_->world().OnAgentGone(number);
      StepSoon();
    }
    const auto node = static_cast<std::size_t>(connection.node);
    if (links_[node] == number) {
      links_[node] = 0;
      if (agents_[node]) {
        agents_[node]->OnDisconnected();
        ConnectAgent(connection.node);
      }
    }
  });
}

}  // namespace trainyard::faults
