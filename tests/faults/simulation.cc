// SPDX-License-Identifier: Apache-2.0
#include "faults/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <regex>
#include <set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "catalog/catalog.h"
#include "faults/company_policy.h"
#include "faults/stage_workers.h"
#include "live/agent.h"
#include "live/controller.h"
#include "profile/execution_model.h"
#include "scenario/assembly.h"
#include "support/memory_store.h"

namespace trainyard {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kFaultsUntil = seconds(2400);
constexpr Duration kLatest = seconds(60'000);
constexpr int kResourceExhausted = 8;

class Simulation;

// The workers of an attempt on all its nodes: they advance only together.
struct Gang {
  int running = 0;
  std::optional<TimePoint> since;  // all of them are there
  std::optional<TimePoint> until;  // one has gone
  double done_before = 0;
  double rate = 0;
  double restart_cost_s = 0;
  std::int64_t order = -1;  // of the last change of the rate

  [[nodiscard]] double ProductiveBy(TimePoint now) const {
    return since ? std::max(0.0, Seconds(until.value_or(now) - *since) - restart_cost_s) : 0;
  }
};

// What is wrong with a node for a while.
struct Sickness {
  v1::AttemptReport::Cause cause = v1::AttemptReport::CAUSE_UNSPECIFIED;  // that: workers fail
  std::string message;
  double chance = 1;  // that an attempt is hit
  TimePoint until{};
};

// What the engine granted to an attempt, and in which of the controller's steps it held.
struct Granted {
  Grant grant;
  TimePoint since{};  // that it is as it is
  std::uint64_t first_step = 0;
  std::uint64_t last_step = 0;
};

// The disk under a controller: what is written survives, what is not is lost with the crash.
class PretendedDisk final : public MemoryStore {
 public:
  explicit PretendedDisk(PlantedBug bug)
      : lies_(bug == PlantedBug::kAckBeforeSync), ages_(bug == PlantedBug::kOldSnapshot) {}
  Status Append(std::string_view block) override {
    if (full_) {
      return Failed("the disk is full");
    }
    if (Crashes()) {
      if (torn_ && !lies_) {
        (void)MemoryStore::Append(block);  // it is there, but nobody has been told
      }
      has_crashed_ = true;
      return Failed(kCrash);
    }
    if (!lies_) {
      return MemoryStore::Append(block);
    }
    unsynced_.emplace_back(block);
    if (unsynced_.size() > 3) {
      (void)MemoryStore::Append(unsynced_.front());
      unsynced_.erase(unsynced_.begin());
    }
    return {};
  }
  Status AddSnapshot(const store::StoredSnapshot& snapshot, std::uint64_t before) override {
    if (lies_) {
      return Failed("no snapshots here");
    }
    if (full_) {
      return Failed("the disk is full");
    }
    if (Crashes()) {
      if (torn_) {
        (void)MemoryStore::AddSnapshot(snapshot, before);
      }
      has_crashed_ = true;
      return Failed(kCrash);
    }
    if (ages_) {
      store::StoredSnapshot old = snapshot;
      std::swap(old.state, last_state_);
      return old.state.empty() ? Status() : MemoryStore::AddSnapshot(old, before);
    }
    return MemoryStore::AddSnapshot(snapshot, before);
  }
  std::uint64_t epoch() const override { return epoch_; }

  void Open() {
    ++epoch_;
    unsynced_.clear();
    has_crashed_ = false;
  }
  void SetFull(bool full) { full_ = full; }
  void FailIn(int writes, bool torn) {
    fails_in_ = writes;
    torn_ = torn;
  }
  // In the middle of a write, of which the controller makes nothing but another try.
  [[nodiscard]] bool has_crashed() const { return has_crashed_; }

  static constexpr const char* kCrash = "the machine has crashed";

 private:
  bool Crashes() { return fails_in_ > 0 && --fails_in_ == 0; }

  bool lies_;
  bool ages_;
  std::string last_state_;
  std::vector<std::string> unsynced_;
  std::uint64_t epoch_ = 0;
  int fails_in_ = 0;
  bool torn_ = false;
  bool has_crashed_ = false;
  bool full_ = false;
};

// The processes of one node: they outlive the agent, but not the node.
class PretendedProcesses final : public supervisor::Processes {
 public:
  struct Running {
    v1::StartAttempt start;
    v1::AttemptReport report;
    bool alive = true;
    int loader_workers = 0;  // as it has been told last
    std::int64_t tuned = -1;
  };

  PretendedProcesses(Simulation& simulation, int node);

  std::vector<v1::AttemptReport> Recover() override;
  void Start(const v1::StartAttempt& start) override;
  void Stop(const v1::AttemptId& attempt, Duration grace) override;
  void Tune(const v1::TuneAttempt& tune) override;
  void SetLease(Duration from_now, Duration grace) override;
  void Forget(const v1::AttemptId& attempt) override {
    attempts_.erase({attempt.job(), attempt.attempt()});
  }
  Result<v1::LogsReply> ReadLog(const v1::AttemptId& /*attempt*/, int /*rank*/,
                                std::uint64_t /*offset*/) override {
    return v1::LogsReply();
  }
  std::vector<v1::AttemptReport> TakeReports() override { return std::exchange(reports_, {}); }

  void LoseAll();  // the node has crashed
  void LoseAgent() { stages_.LoseAgent(); }
  [[nodiscard]] int turns() const { return stages_.turns(); }
  void Fail(std::pair<std::uint64_t, std::uint32_t> key, const Sickness& sickness);
  void Finish(std::pair<std::uint64_t, std::uint32_t> key);
  [[nodiscard]] const std::map<std::pair<std::uint64_t, std::uint32_t>, Running>& attempts() const {
    return attempts_;
  }

 private:
  void Exit(std::pair<std::uint64_t, std::uint32_t> key, bool killed);
  void TellProgress(std::pair<std::uint64_t, std::uint32_t> key, double pace);
  [[nodiscard]] double DoneBy(const Running& attempt) const;
  void Tell(const v1::AttemptReport& report);

  Simulation& simulation_;
  int node_;
  std::map<std::pair<std::uint64_t, std::uint32_t>, Running> attempts_;
  std::vector<v1::AttemptReport> reports_;
  std::uint64_t lease_number_ = 0;
  StageWorkers stages_;
};

// The copies of data sets on the disk of one node, which survive agent and node, and what is being
// fetched, which does not.
class PretendedStore final : public supervisor::DataStore {
 public:
  PretendedStore(Simulation& simulation, int node) : simulation_(simulation), node_(node) {}

  std::vector<v1::DataCopy> Recover() override;
  void Fetch(const v1::DataSet& data) override;
  void Remove(const std::string& name) override;
  std::string FolderOf(const std::string& name) const override { return "/copies/" + name; }
  std::vector<supervisor::FetchReport> TakeReports() override {
    return std::exchange(reports_, {});
  }

  void LoseAgent();
  void LoseDisk() {
    LoseAgent();
    copies_.clear();
    broken_.clear();
  }
  [[nodiscard]] bool Has(const std::string& name) const {
    const auto copy = copies_.find(name);
    return copy != copies_.end() && copy->second.mib() > 0;
  }
  static constexpr std::int64_t kRoom = 100;

 private:
  void Tell(supervisor::FetchReport report);

  Simulation& simulation_;
  int node_;
  std::map<std::string, v1::DataCopy> copies_;
  std::set<std::string> fetching_;
  std::set<std::string> broken_;
  std::uint64_t life_ = 0;  // of the agent
  std::vector<supervisor::FetchReport> reports_;
};

// A stream between an agent and the controller of the moment.
struct Connection {
  int node = 0;
  bool open_here = true;   // the agent believes in it
  bool open_there = true;  // the controller does
  bool silent = false;     // what is sent gets lost
  TimePoint last_up{};     // messages arrive in order
  TimePoint last_down{};
  std::uint64_t controller_life = 0;
  TimePoint opened{};
};

struct Client {
  std::string token;
  v1::JobRequest job;
  std::optional<std::uint64_t> number;  // acknowledged
  bool will_cancel = false;
  bool cancelled = false;
  bool cancel_acknowledged = false;
  v1::JobState last = v1::JOB_STATE_UNSPECIFIED;
};

class Simulation final : public live::LiveOutput {
 public:
  explicit Simulation(const FaultOptions& options)
      : options_(options), random_(options.seed), disk_(options.bug) {
    for (int i = 0; i < options.nodes; ++i) {
      cluster_.nodes.push_back({.name = "n" + std::to_string(i), .gpus = options.gpus});
      processes_.push_back(std::make_unique<PretendedProcesses>(*this, i));
      stores_.push_back(std::make_unique<PretendedStore>(*this, i));
      agents_.emplace_back();
      agent_lives_.push_back(0);
      links_.push_back(0);
      timer_numbers_.push_back(0);
      sick_.emplace_back();
    }
    static const Status added =
        catalog::AddComponents(std::array{CompanyEntry()}, "the fault simulation");
    CHECK(added.ok());
    const std::vector<std::string> policies{"fifo",
                                            "srtf",
                                            "las",
                                            "tiresias",
                                            "srsf",
                                            "gandiva",
                                            "ftf",
                                            "drf",
                                            "tetris",
                                            "company",
                                            "company",
                                            "company",
                                            "muri-s",
                                            "chronus:lease=60",
                                            "antman",
                                            "torchloader",
                                            "auto:policies=las+srtf,admissions=all,horizon=600"};
    policy_name_ = policies[Pick(policies.size())];
    const std::vector<std::string> placements{"consolidated", "first-fit",
                                              "consolidated:locality=1", "first-fit:locality=1"};
    std::string placement = placements[Pick(placements.size())];
    if (policy_name_ == "gandiva" || policy_name_ == "company" || policy_name_ == "antman" ||
        policy_name_ == "torchloader") {
      placement = "gandiva";
    }
    parts_ = scenario::AssembleComponents(
                 {.policy = policy_name_, .placement = placement, .admission = "all"}, cluster_, "")
                 .value();
    shares_gpus_ = parts_.traits().may.share;
    lacks_programs_ = Chance(0.3);
    workers_fail_ = Chance(0.3);
    snapshots_ = {.entries = 1 + Pick(30), .interval = seconds(60), .compact = Chance(0.3)};
    parts_.rates =
        policy_name_ == "company" ? MakeCompanyModel() : profile::MakeMixedModel(nullptr);
  }

  FaultResult Run();

  // LiveOutput
  void Reply(std::uint64_t call, v1::ClientReply reply) override {
    const auto at = calls_.find(call);
    if (at == calls_.end() || Chance(loss_)) {
      return;
    }
    After(Delay(), [then = at->second, reply = std::move(reply)] { then(reply); });
    calls_.erase(at);
  }
  void Send(std::uint64_t connection, v1::ControllerMessage message) override;
  void Close(std::uint64_t connection) override { Break(connection, true); }

  [[nodiscard]] TimePoint now() const { return now_; }
  [[nodiscard]] const FaultOptions& options() const { return options_; }
  void After(Duration delay, std::function<void()> what) {
    queue_.push({now_ + delay, order_++, std::move(what)});
  }
  bool Chance(double p) { return std::uniform_real_distribution<double>(0, 1)(random_) < p; }
  std::size_t Pick(std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_);
  }
  Duration Between(Duration a, Duration b) {
    return Duration{std::uniform_int_distribution<std::int64_t>(a.count(), b.count())(random_)};
  }
  void Violated(const std::string& what) {
    if (result_.violation.empty()) {
      result_.violation = fmt::format("at {:.3f} s: {}", Seconds(now_), what);
    }
  }
  void OnReports(int node) {
    After(Duration{0}, [this, node] {
      if (agents_[static_cast<std::size_t>(node)]) {
        agents_[static_cast<std::size_t>(node)]->OnReports();
      }
    });
  }
  void CheckStart(int node, const v1::StartAttempt& start);
  // What hits an attempt that starts there now, if anything does.
  [[nodiscard]] std::optional<Sickness> SicknessAt(int node) {
    const Sickness& sickness = sick_[static_cast<std::size_t>(node)];
    return FaultsGoOn() && sickness.until > now_ && Chance(sickness.chance)
               ? std::optional(sickness)
               : std::nullopt;
  }
  void CountNodeFailure() { ++result_.node_failures; }
  void CountTune() { ++result_.tunes; }
  FaultResult& result() { return result_; }
  [[nodiscard]] bool FaultsGoOn() const { return now_.time_since_epoch() < kFaultsUntil; }
  [[nodiscard]] const PretendedProcesses& ProcessesOf(int node) const {
    return *processes_[static_cast<std::size_t>(node)];
  }
  // What the job's checkpoints hold; shared by all nodes, as a file system is.
  std::map<std::uint64_t, double>& checkpoints() { return checkpoints_; }
  Gang& GangOf(const v1::AttemptId& id) { return gangs_[{id.job(), id.attempt()}]; }
  void FinishIn(Duration time, std::pair<std::uint64_t, std::uint32_t> key) {
    After(time + milliseconds(1), [this, key] { FinishGang(key); });
  }
  void FinishGang(std::pair<std::uint64_t, std::uint32_t> key) {
    for (const std::unique_ptr<PretendedProcesses>& processes : processes_) {
      processes->Finish(key);
    }
  }
  void Trace(const std::string& what) const {
    if (options_.verbose) {
      fmt::print("{:10.3f} {}\n", Seconds(now_), what);
    }
  }

 private:
  struct Entry {
    TimePoint at;
    std::uint64_t order;
    std::function<void()> what;
    bool operator<(const Entry& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  [[nodiscard]] TimePoint ControllerTime() const { return now_ + clock_offset_; }
  Duration Delay() {
    return Chance(0.05) ? Between(milliseconds(1), seconds(3))
                        : Between(milliseconds(1), milliseconds(20));
  }

  void Deliver(TimePoint& last, const std::function<void()>& deliver);
  void StartController();
  [[nodiscard]] profile::MeasuredBook MeasuredBefore() const;
  void CompareWithReplay(const live::ControllerSetup& setup);
  void CrashController();
  void StepSoon();
  void StepController(std::uint64_t life);
  void StartAgent(int node);
  void CrashAgent(int node);
  void ConnectAgent(int node);
  void AgentTimer(int node);
  void FromAgent(int node, std::uint64_t life, v1::AgentMessage message);
  void Break(std::uint64_t connection, bool by_controller);
  void PlanFault();
  void Fault();
  void Call(v1::ClientRequest request, std::function<void(const v1::ClientReply&)> then);
  void SubmitJob(std::size_t client);
  void ResizeJob(std::size_t client);
  void CancelJob(std::size_t client);
  void CheckStatuses();
  void NoteGrants();
  [[nodiscard]] bool MayShare(std::pair<std::uint64_t, std::uint32_t> one,
                              std::pair<std::uint64_t, std::uint32_t> other) const;
  void UndrainAll();
  void MakeMeasured(v1::JobRequest& job);
  void FallSick(std::size_t node);
  void AskForNodes();
  void CheckLoaders();
  void CheckEnd();
  [[nodiscard]] bool AllOver() const;

  FaultOptions options_;
  std::mt19937_64 random_;
  PretendedDisk disk_;
  Cluster cluster_;
  std::string policy_name_;
  scenario::Assembly parts_;
  bool shares_gpus_ = false;
  live::SnapshotRules snapshots_;

  std::priority_queue<Entry> queue_;
  std::uint64_t order_ = 0;
  TimePoint now_{};
  std::unique_ptr<live::Controller> controller_;
  std::uint64_t controller_life_ = 0;
  Duration clock_offset_{0};
  bool step_planned_ = false;
  TimePoint planned_wake_ = kEndOfTime;
  std::vector<std::unique_ptr<PretendedProcesses>> processes_;
  std::vector<std::unique_ptr<PretendedStore>> stores_;
  std::vector<std::unique_ptr<live::Agent>> agents_;
  std::vector<std::uint64_t> agent_lives_;
  std::vector<std::uint64_t> links_;  // connection of each node's agent, 0: none
  std::vector<std::uint64_t> timer_numbers_;
  std::map<std::uint64_t, Connection> connections_;
  std::uint64_t connection_numbers_ = 0;
  std::map<std::uint64_t, std::function<void(const v1::ClientReply&)>> calls_;
  std::uint64_t call_numbers_ = 0;
  std::vector<Client> clients_;
  std::map<std::uint64_t, double> checkpoints_;
  std::map<std::uint64_t, double> progress_told_;  // with the last start of each job
  std::map<std::pair<std::uint64_t, std::uint32_t>, Gang> gangs_;
  std::map<std::pair<std::uint64_t, std::uint32_t>, Granted> granted_;  // not those for itself
  std::uint64_t steps_ = 0;
  TimePoint last_fault_{};
  std::vector<Sickness> sick_;   // by node
  bool lacks_programs_ = false;  // the last node, at times; then nobody else drains nodes
  bool workers_fail_ = false;    // at times on sick nodes, which is no failure of the controller's
  std::set<std::string> drained_;
  double loss_ = 0.02;
  FaultResult result_;
};

// -------------------------------------------------------------------------------------- processes

PretendedProcesses::PretendedProcesses(Simulation& simulation, int node)
    : simulation_(simulation),
      node_(node),
      stages_({.now = [this] { return simulation_.now(); },
               .after =
                   [this](Duration delay, std::function<void()> what) {
                     simulation_.After(delay, std::move(what));
                   },
               .between = [this](Duration a, Duration b) { return simulation_.Between(a, b); },
               .chance = [this](double p) { return simulation_.Chance(p); },
               .violated = [this](const std::string& what) { simulation_.Violated(what); },
               .no_turns = simulation.options().bug == PlantedBug::kNoTurns}) {}

double PretendedProcesses::DoneBy(const Running& attempt) const {
  const Gang& gang = simulation_.GangOf(attempt.start.id());
  return std::min(attempt.start.iterations(),
                  gang.done_before + gang.ProductiveBy(simulation_.now()) * gang.rate);
}

void PretendedProcesses::Tell(const v1::AttemptReport& report) {
  reports_.push_back(report);
  simulation_.OnReports(node_);
}

std::vector<v1::AttemptReport> PretendedProcesses::Recover() {
  std::vector<v1::AttemptReport> reports;
  reports_.clear();
  for (const auto& [key, attempt] : attempts_) {
    reports.push_back(attempt.report);
    if (!attempt.start.data_folder().empty() &&
        simulation_.options().bug != PlantedBug::kForgetsUse) {
      reports.back().set_data_set(attempt.start.data_set().name());
    }
  }
  return reports;
}

void PretendedProcesses::Start(const v1::StartAttempt& start) {
  simulation_.CheckStart(node_, start);
  const std::pair<std::uint64_t, std::uint32_t> key{start.id().job(), start.id().attempt()};
  Running& attempt = attempts_[key];
  attempt.start = start;
  *attempt.report.mutable_id() = start.id();
  *attempt.report.mutable_gpus() = start.gpus();
  attempt.report.set_state(v1::AttemptReport::RUNNING);
  if (const std::optional<Sickness> sickness = simulation_.SicknessAt(node_)) {
    const bool starts = sickness->cause == v1::AttemptReport::CAUSE_UNSPECIFIED ||
                        sickness->cause == v1::AttemptReport::SUPERVISOR_LOST;
    if (!starts) {
      return Fail(key, *sickness);
    }
    simulation_.After(simulation_.Between(milliseconds(1), seconds(40)),
                      [this, key, sickness] { Fail(key, *sickness); });
  }
  attempt.loader_workers = start.share().loader_workers();
  if (start.has_turns()) {
    stages_.Start(key, supervisor::MaskOf(start.gpus()), start.turns());
  }
  Tell(attempt.report);
  if (start.launch().workers() != v1::LaunchSpec::EMULATED && start.node_rank() == 0) {
    TellProgress(key,
                 simulation_.Chance(0.1) ? 1000 : 1 + static_cast<double>(simulation_.Pick(5)));
  }
  Gang& gang = simulation_.GangOf(start.id());
  if (++gang.running < start.nodes() || gang.until) {
    return;
  }
  gang.since = simulation_.now();
  gang.done_before = simulation_.checkpoints()[start.id().job()];
  gang.restart_cost_s = start.restart_cost_s();
  if (gang.order < 0) {
    gang.rate = start.rate();
  }
  const double left = std::max(0.0, start.iterations() - gang.done_before);
  simulation_.FinishIn(FromSeconds(gang.restart_cost_s + left / gang.rate), key);
}

// Of workers that are measured. They advance as the controller thinks, and say that they were so
// many times slower.
void PretendedProcesses::TellProgress(std::pair<std::uint64_t, std::uint32_t> key, double pace) {
  const auto at = attempts_.find(key);
  if (at == attempts_.end() || !at->second.alive) {
    return;
  }
  Running& attempt = at->second;
  const Gang& gang = simulation_.GangOf(attempt.start.id());
  if (gang.since && attempt.report.state() == v1::AttemptReport::RUNNING) {
    attempt.report.set_iterations(DoneBy(attempt));
    attempt.report.set_first_progress_s(0.1);
    attempt.report.set_progress_s(0.1 + pace * Seconds(simulation_.now() - *gang.since));
    attempt.report.clear_stages();
    for (const v1::Stage stage : {v1::LOAD, v1::FORWARD, v1::COMMUNICATION}) {
      v1::StageSeconds& told = *attempt.report.add_stages();
      told.set_stage(stage);
      told.set_seconds(pace * static_cast<double>(1 + simulation_.Pick(9)) / 10);
    }
    Tell(attempt.report);
  }
  simulation_.After(simulation_.Between(seconds(1), seconds(10)),
                    [this, key, pace] { TellProgress(key, pace); });
}

// All of a gang's nodes are told; it changes its pace with the first.
void PretendedProcesses::Tune(const v1::TuneAttempt& tune) {
  const std::pair<std::uint64_t, std::uint32_t> key{tune.id().job(), tune.id().attempt()};
  Gang& gang = simulation_.GangOf(tune.id());
  const auto at = attempts_.find(key);
  if (at != attempts_.end()) {
    if (simulation_.options().bug == PlantedBug::kLostShares && simulation_.Chance(0.5)) {
      return;
    }
    if (tune.order() <= at->second.tuned) {
      simulation_.Violated(fmt::format("job {} is tuned by an old order", key.first));
    }
    at->second.tuned = tune.order();
    at->second.loader_workers = tune.share().loader_workers();
    simulation_.CountTune();
  }
  if (at == attempts_.end() || !at->second.alive || tune.order() <= gang.order || gang.until) {
    return;
  }
  gang.order = tune.order();
  if (gang.since) {
    gang.done_before = DoneBy(at->second);
    const double gone_s = Seconds(simulation_.now() - *gang.since);
    gang.restart_cost_s = std::max(0.0, gang.restart_cost_s - gone_s);
    gang.since = simulation_.now();
    const double left = std::max(0.0, at->second.start.iterations() - gang.done_before);
    simulation_.FinishIn(FromSeconds(gang.restart_cost_s + left / tune.rate()), key);
  }
  gang.rate = tune.rate();
}

void PretendedProcesses::Finish(std::pair<std::uint64_t, std::uint32_t> key) {
  const auto at = attempts_.find(key);
  if (at != attempts_.end() && at->second.alive &&
      DoneBy(at->second) >= at->second.start.iterations()) {
    at->second.report.set_finished(true);
    Exit(key, false);
  }
}

void PretendedProcesses::Exit(std::pair<std::uint64_t, std::uint32_t> key, bool killed) {
  const auto at = attempts_.find(key);
  if (at == attempts_.end() || !at->second.alive) {
    return;
  }
  Running& attempt = at->second;
  attempt.alive = false;
  stages_.Leave(key);
  attempt.report.set_state(v1::AttemptReport::EXITED);
  attempt.report.set_exit_code(killed ? 137 : 0);
  Gang& gang = simulation_.GangOf(attempt.start.id());
  gang.until = gang.until.value_or(simulation_.now());
  if (!killed) {
    const double done = DoneBy(attempt);
    attempt.report.set_iterations(done);
    attempt.report.set_checkpointed_iterations(done);
    double& saved = simulation_.checkpoints()[key.first];
    saved = std::max(saved, done);
  }
  Tell(attempt.report);
}

void PretendedProcesses::Fail(std::pair<std::uint64_t, std::uint32_t> key,
                              const Sickness& sickness) {
  const auto at = attempts_.find(key);
  if (at == attempts_.end() || !at->second.alive) {
    return;
  }
  at->second.alive = false;
  stages_.Leave(key);
  Gang& gang = simulation_.GangOf(at->second.start.id());
  gang.until = gang.until.value_or(simulation_.now());
  v1::AttemptReport& report = at->second.report;
  report.set_state(v1::AttemptReport::EXITED);
  report.set_message(sickness.message);
  report.set_failed_at(Seconds(simulation_.now()));
  if (sickness.cause == v1::AttemptReport::CAUSE_UNSPECIFIED) {
    report.set_exit_code(1);
  } else if (sickness.cause == v1::AttemptReport::SUPERVISOR_LOST) {
    report.set_exit_code(137);
    report.set_lost(true);
  } else {
    report.set_exit_code(126);
  }
  if (simulation_.options().bug != PlantedBug::kBlamesJobs) {
    report.set_cause(sickness.cause);
  }
  simulation_.CountNodeFailure();
  Tell(report);
}

void PretendedProcesses::Stop(const v1::AttemptId& id, Duration grace) {
  const std::pair<std::uint64_t, std::uint32_t> key{id.job(), id.attempt()};
  const auto at = attempts_.find(key);
  if (at == attempts_.end() || !at->second.alive) {
    return;
  }
  if (at->second.report.state() == v1::AttemptReport::RUNNING) {
    at->second.report.set_lost(true);
    at->second.report.set_state(simulation_.options().bug == PlantedBug::kDoubleGrant
                                    ? v1::AttemptReport::EXITED
                                    : v1::AttemptReport::STOPPING);
    Tell(at->second.report);
  }
  const bool stubborn = simulation_.Chance(0.1);
  simulation_.After(stubborn ? grace : simulation_.Between(Duration{0}, grace),
                    [this, key, stubborn] { Exit(key, stubborn); });
}

void PretendedProcesses::SetLease(Duration from_now, Duration grace) {
  const std::uint64_t number = ++lease_number_;
  if (simulation_.options().bug == PlantedBug::kNoFencing) {
    return;
  }
  simulation_.After(std::max(Duration{0}, from_now), [this, number, grace] {
    if (number != lease_number_) {
      return;
    }
    for (auto& [key, attempt] : attempts_) {
      if (attempt.alive) {
        Stop(attempt.report.id(), grace);
      }
    }
  });
}

void PretendedProcesses::LoseAll() {
  for (auto& [key, attempt] : attempts_) {
    if (attempt.alive) {
      attempt.alive = false;
      stages_.Leave(key);
      attempt.report.set_state(v1::AttemptReport::EXITED);
      attempt.report.set_exit_code(137);
      attempt.report.set_lost(true);
      Gang& gang = simulation_.GangOf(attempt.start.id());
      gang.until = gang.until.value_or(simulation_.now());
    }
  }
}

// --------------------------------------------------------------------------------------- data sets

void PretendedStore::Tell(supervisor::FetchReport report) {
  reports_.push_back(std::move(report));
  simulation_.OnReports(node_);
}

std::vector<v1::DataCopy> PretendedStore::Recover() {
  std::vector<v1::DataCopy> found;
  for (const auto& [name, copy] : copies_) {
    found.push_back(copy);
  }
  return found;
}

void PretendedStore::LoseAgent() {
  ++life_;
  simulation_.result().broken_fetches += static_cast<int>(fetching_.size());
  broken_.merge(fetching_);
  fetching_.clear();
  reports_.clear();
}

void PretendedStore::Fetch(const v1::DataSet& data) {
  const std::string& name = data.name();
  if (Has(name) || !fetching_.insert(name).second) {
    simulation_.Violated(fmt::format("{} is fetched onto n{} twice", name, node_));
  }
  *copies_[name].mutable_set() = data;
  simulation_.result().resumed_fetches += static_cast<int>(broken_.erase(name));
  std::int64_t mib = 0;
  for (const auto& [other, copy] : copies_) {
    mib += copy.set().mib();
  }
  if (mib > kRoom) {
    simulation_.Violated(fmt::format("n{} keeps {} MiB of data sets", node_, mib));
  }
  const Duration takes = simulation_.Between(milliseconds(100), seconds(90));
  simulation_.After(takes / 2, [this, name, life = life_] {
    if (life == life_) {
      Tell({.name = name, .fetched = 0.5});
    }
  });
  const bool fails = simulation_.FaultsGoOn() && simulation_.Chance(0.05);
  simulation_.After(takes, [this, name, fails, life = life_] {
    if (life != life_) {
      return;
    }
    fetching_.erase(name);
    if (fails) {
      ++simulation_.result().failed_fetches;
      return Tell({.name = name,
                   .ended = true,
                   .error = "ssh: connect to host store port 22: Connection refused",
                   .cause = v1::AttemptReport::DATA});
    }
    ++simulation_.result().fetches;
    copies_[name].set_mib(copies_[name].set().mib());
    copies_[name].set_fetched_at(Seconds(simulation_.now()));
    Tell({.name = name, .ended = true, .mib = copies_[name].mib()});
  });
}

void PretendedStore::Remove(const std::string& name) {
  if (fetching_.contains(name)) {
    simulation_.Violated(fmt::format("{} is removed from n{} as it is fetched", name, node_));
  }
  for (const auto& [key, attempt] : simulation_.ProcessesOf(node_).attempts()) {
    if (attempt.alive && !attempt.start.data_folder().empty() &&
        attempt.start.data_set().name() == name) {
      simulation_.Violated(
          fmt::format("{} is removed from n{} under job {}", name, node_, key.first));
    }
  }
  simulation_.result().removed_copies += Has(name) ? 1 : 0;
  copies_.erase(name);
  broken_.erase(name);
}

// Nothing twice: no GPU for two, no job in two attempts. What it is told of its data set is there.
void Simulation::CheckStart(int node, const v1::StartAttempt& start) {
  for (std::size_t n = 0; n < processes_.size(); ++n) {
    for (const auto& [key, other] : processes_[n]->attempts()) {
      if (!other.alive) {
        continue;
      }
      if (key.first == start.id().job() && key.second != start.id().attempt()) {
        Violated(fmt::format("job {} runs twice: attempt {} on n{}, attempt {} on n{}", key.first,
                             key.second, n, start.id().attempt(), node));
      }
      if (n != static_cast<std::size_t>(node)) {
        continue;
      }
      if (MayShare(key, {start.id().job(), start.id().attempt()})) {
        continue;
      }
      for (const int gpu : start.gpus()) {
        if (std::find(other.start.gpus().begin(), other.start.gpus().end(), gpu) !=
            other.start.gpus().end()) {
          Violated(fmt::format("GPU {} of n{} is held by job {} and given to job {}", gpu, node,
                               key.first, start.id().job()));
        }
      }
    }
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
  for (const Client& client : clients_) {
    if (client.number == start.id().job() && client.last == v1::COMPLETED) {
      Violated(fmt::format("job {} is started after its completion", start.id().job()));
    }
  }
}

// Two attempts may be beside one another if the engine granted it for one and the same time.
void Simulation::NoteGrants() {
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
    Granted& granted = granted_[{live::NumberOf(JobAt(i)), attempt}];
    granted.first_step = granted.first_step == 0 ? steps_ : granted.first_step;
    granted.last_step = steps_;
    if (granted.grant != grant) {
      granted.since = now_;
    }
    granted.grant = grant;
  }
}

bool Simulation::MayShare(std::pair<std::uint64_t, std::uint32_t> one,
                          std::pair<std::uint64_t, std::uint32_t> other) const {
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

profile::MeasuredBook Simulation::MeasuredBefore() const {
  profile::MeasuredBook book;
  for (int i = 0; i < 3 && options_.bug == PlantedBug::kOtherMeasured && controller_life_ > 1;
       ++i) {
    (void)book.Add({.model = "m0"}, profile::Measure::kRestart, 100);
  }
  return book;
}

void Simulation::StartController() {
  disk_.Open();
  ++controller_life_;
  // The clock of its machine has been set meanwhile.
  clock_offset_ = FaultsGoOn() ? Between(-seconds(30), seconds(30)) : clock_offset_;
  live::LiveOptions live{.heartbeat = seconds(5),
                         .lease = seconds(60),
                         .grace = seconds(20),
                         .margin = seconds(5),
                         .policy = policy_name_,
                         .epoch = disk_.epoch()};
  live::ControllerSetup setup{
      .engine = parts_.Setup(cluster_), .live = live, .snapshots = snapshots_};
  setup.engine.rules = {};
  setup.engine.overheads = {};
  setup.engine.measured = MeasuredBefore();
  Result<std::unique_ptr<live::Controller>> opened =
      live::Controller::Open(setup, disk_, *this, ControllerTime());
  if (!opened.ok()) {
    return Violated("the controller does not start again: " + opened.error().message);
  }
  controller_ = std::move(opened).value();
  CompareWithReplay(setup);
  NoteGrants();
  Trace(fmt::format("controller {} starts with {}, {} jobs", controller_life_, policy_name_,
                    controller_->world().jobs()));
  for (const Client& client : clients_) {
    if (client.number && *client.number > controller_->world().jobs()) {
      Violated(fmt::format("acknowledged job {} is lost", *client.number));
    }
  }
  planned_wake_ = kEndOfTime;
  StepSoon();
  if (FaultsGoOn() && Chance(0.3)) {
    disk_.FailIn(static_cast<int>(1 + Pick(40)), Chance(0.5));
  }
}

// Of what a snapshot and the rest of the journal give, nothing may differ from what the whole
// journal gives.
void Simulation::CompareWithReplay(const live::ControllerSetup& setup) {
  for (const std::string& remark : controller_->restart().remarks) {
    Violated(remark);
  }
  if (controller_->restart().snapshot == 0) {
    return;
  }
  ++result_.resumed;
  if (snapshots_.compact) {
    return;  // the whole journal is not there any more
  }
  PretendedDisk whole = disk_;
  whole.DropSnapshots();
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

void Simulation::CrashController() {
  if (!controller_) {
    return;
  }
  Trace("controller crashes");
  ++result_.controller_crashes;
  controller_.reset();
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

void Simulation::StepSoon() {
  if (!step_planned_ && controller_) {
    step_planned_ = true;
    After(Between(Duration{0}, milliseconds(8)), [this, life = controller_life_] {
      step_planned_ = false;
      StepController(life);
    });
  }
}

void Simulation::StepController(std::uint64_t life) {
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
  NoteGrants();
  CheckStatuses();
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
void Simulation::Deliver(TimePoint& last, const std::function<void()>& deliver) {
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

void Simulation::Send(std::uint64_t number, v1::ControllerMessage message) {
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
      agents_[node]->OnMessage(message, now_);
      AgentTimer(to->second.node);
    }
  };
  Deliver(connection.last_down, deliver);
}

// One side sees the end at once, the other later, and what is under way is lost.
void Simulation::Break(std::uint64_t number, bool by_controller) {
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

// ----------------------------------------------------------------------------------------- agents

void Simulation::StartAgent(int node) {
  const auto n = static_cast<std::size_t>(node);
  const std::uint64_t life = ++agent_lives_[n];
  v1::Hello hello;
  hello.set_node(cluster_.nodes[n].name);
  hello.set_address(cluster_.nodes[n].name);
  hello.set_gpus(options_.gpus);
  hello.set_start(std::to_string(life));
  const bool keeps_data = n + 1 < stores_.size();  // all but the last
  if (keeps_data) {
    hello.mutable_data()->set_cache_mib(PretendedStore::kRoom);
    hello.mutable_data()->set_rate_kbps(1000);
  }
  agents_[n] = std::make_unique<live::Agent>(
      std::move(hello), *processes_[n],
      [this, node, life](v1::AgentMessage message) { FromAgent(node, life, std::move(message)); },
      keeps_data ? stores_[n].get() : nullptr);
  agents_[n]->Begin();
  ConnectAgent(node);
}

void Simulation::CrashAgent(int node) {
  const auto n = static_cast<std::size_t>(node);
  if (!agents_[n]) {
    return;
  }
  agents_[n].reset();
  processes_[n]->LoseAgent();
  stores_[n]->LoseAgent();
  if (links_[n] != 0) {
    const std::uint64_t link = std::exchange(links_[n], 0);
    Break(link, false);
  }
  After(Chance(0.1) ? Between(seconds(60), seconds(300)) : Between(milliseconds(100), seconds(10)),
        [this, node] {
          if (!agents_[static_cast<std::size_t>(node)]) {
            StartAgent(node);
          }
        });
}

void Simulation::ConnectAgent(int node) {
  After(Between(milliseconds(50), seconds(2)), [this, node] {
    const auto n = static_cast<std::size_t>(node);
    if (!agents_[n] || links_[n] != 0) {
      return;
    }
    if (!controller_) {
      return ConnectAgent(node);
    }
    const std::uint64_t number = ++connection_numbers_;
    connections_[number] = {.node = node,
                            .last_up = now_,
                            .last_down = now_,
                            .controller_life = controller_life_,
                            .opened = now_};
    links_[n] = number;
    agents_[n]->OnConnected(now_);
    AgentTimer(node);
  });
}

void Simulation::AgentTimer(int node) {
  const auto n = static_cast<std::size_t>(node);
  if (const std::optional<TimePoint> at = agents_[n]->next_timer()) {
    After(std::max(Duration{0}, *at - now_), [this, node, number = ++timer_numbers_[n]] {
      const auto m = static_cast<std::size_t>(node);
      if (agents_[m] && number == timer_numbers_[m]) {
        agents_[m]->OnTime(now_);
        AgentTimer(node);
      }
    });
  }
}

void Simulation::FromAgent(int node, std::uint64_t life, v1::AgentMessage message) {
  const auto n = static_cast<std::size_t>(node);
  const auto at = connections_.find(links_[n]);
  if (life != agent_lives_[n] || at == connections_.end() || at->second.silent) {
    return;
  }
  Connection& connection = at->second;
  const bool hello = message.has_hello();
  const auto deliver = [this, number = at->first, message = std::move(message)] {
    const auto to = connections_.find(number);
    if (to != connections_.end() && !to->second.silent && to->second.open_there && controller_ &&
        to->second.controller_life == controller_life_) {
      controller_->world().OnAgent(number, message);
      StepSoon();
    }
  };
  if (hello) {  // the first of a connection, so that others are not for nobody
    connection.last_up = now_ + Delay();
    return After(connection.last_up - now_, deliver);
  }
  Deliver(connection.last_up, deliver);
}

// ----------------------------------------------------------------------------------------- faults

void Simulation::PlanFault() {
  if (FaultsGoOn()) {
    After(Between(milliseconds(100), seconds(60)), [this] {
      Fault();
      PlanFault();
    });
  }
}

void Simulation::Fault() {
  last_fault_ = now_;
  const int node = static_cast<int>(Pick(static_cast<std::size_t>(options_.nodes)));
  const auto n = static_cast<std::size_t>(node);
  switch (Pick(9)) {
    case 0:
      return CrashController();
    case 1:
      Trace(fmt::format("agent n{} crashes", node));
      ++result_.agent_crashes;
      return CrashAgent(node);
    case 2:
      Trace(fmt::format("node n{} crashes", node));
      ++result_.node_crashes;
      processes_[n]->LoseAll();
      if (Chance(0.2)) {
        stores_[n]->LoseDisk();
      }
      return CrashAgent(node);
    case 3:
      if (links_[n] != 0) {
        Trace(fmt::format("connection of n{} breaks", node));
        Break(links_[n], Chance(0.5));
      }
      return;
    case 4: {  // a partition: silence, and nobody notices for a while
      ++result_.partitions;
      Trace(fmt::format("n{} is cut off", node));
      if (const auto at = connections_.find(links_[n]); at != connections_.end()) {
        at->second.silent = true;
        After(Between(seconds(1), seconds(180)),
              [this, number = at->first] { Break(number, true); });
      }
      return;
    }
    case 5:
    case 6:
      return FallSick(n);
    case 7:
      Trace("the controller's disk is full");
      ++result_.full_disks;
      disk_.SetFull(true);
      return After(Between(seconds(1), seconds(200)), [this] { disk_.SetFull(false); });
    default: {
      if (lacks_programs_) {
        return;
      }
      v1::ClientRequest request;
      request.mutable_drain()->set_node(cluster_.nodes[n].name);
      request.mutable_drain()->set_drain(Chance(0.3));
      return Call(std::move(request), [](const v1::ClientReply& /*reply*/) {});
    }
  }
}

// One node, or all of them for one and the same reason.
void Simulation::FallSick(std::size_t node) {
  const std::vector<Sickness> kinds{
      {v1::AttemptReport::DISK, "/state/attempts: cannot be made: No space left on device"},
      {v1::AttemptReport::DISK, "/state/logs: cannot be made: Input/output error", 0.5},
      {v1::AttemptReport::SPAWN, "a worker cannot be started: Resource temporarily unavailable"},
      {v1::AttemptReport::DEVICE, "GPU 1: has fallen off the bus"},
      {v1::AttemptReport::SUPERVISOR_LOST, "its supervisor is gone", 0.7},
      {v1::AttemptReport::NO_PROGRAM, "command 'train': No such file or directory"},
      {v1::AttemptReport::NO_FOLDER, "working directory '/data': No such file or directory"}};
  constexpr std::size_t kDoubtful = 2;  // the last ones
  const Sickness errors{v1::AttemptReport::CAUSE_UNSPECIFIED, "", 0.8};
  const bool may_lack = lacks_programs_ && node + 1 == sick_.size();
  Sickness sickness = kinds[Pick(kinds.size() - (may_lack ? 0 : kDoubtful))];
  if (workers_fail_ && Chance(0.3)) {
    sickness = errors;
  }
  sickness.until = now_ + Between(seconds(5), seconds(400));
  const bool all = Chance(0.15) && !may_lack;
  // On one node at a time: nobody can tell two such nodes from a job that kills its supervisors.
  if (sickness.cause == v1::AttemptReport::SUPERVISOR_LOST &&
      (all || std::any_of(sick_.begin(), sick_.end(), [this](const Sickness& other) {
         return other.cause == v1::AttemptReport::SUPERVISOR_LOST && other.until > now_;
       }))) {
    sickness.cause = kinds[0].cause;
    sickness.message = kinds[0].message;
  }
  Trace(fmt::format("{} sick: {} until {:.3f}", all ? "all nodes are" : cluster_.nodes[node].name,
                    v1::AttemptReport::Cause_Name(sickness.cause), Seconds(sickness.until)));
  for (std::size_t i = 0; i < sick_.size(); ++i) {
    if (all || i == node) {
      sick_[i] = sickness;
      ++result_.sick_nodes;
    }
  }
}

// The controller itself drains few.
void Simulation::AskForNodes() {
  v1::ClientRequest request;
  request.mutable_nodes();
  Call(request, [this](const v1::ClientReply& reply) {
    std::set<std::string> drained;
    for (const v1::NodeStatus& node : reply.nodes().nodes()) {
      if (!node.reason().empty()) {
        drained.insert(node.node());
      }
    }
    if (drained.size() > std::max<std::size_t>(1, cluster_.nodes.size() / 5)) {
      Violated(fmt::format("{} nodes are drained by the controller", drained.size()));
    }
    for (const std::string& node : drained) {
      result_.drains += drained_.contains(node) ? 0 : 1;
    }
    drained_ = std::move(drained);
  });
  After(seconds(10), [this] { AskForNodes(); });
}

// What the engine has granted reaches the workers: where all has been quiet for a while, they know
// of the loader workers that they are to have.
void Simulation::CheckLoaders() {
  constexpr Duration kQuiet = seconds(60);
  for (std::size_t n = 0; n < processes_.size() && controller_; ++n) {
    const auto link = connections_.find(links_[n]);
    const bool quiet = link != connections_.end() && !link->second.silent &&
                       link->second.open_there && now_ - link->second.opened > kQuiet &&
                       now_ - last_fault_ > kQuiet && controller_->journal_error().empty();
    for (const auto& [key, attempt] : processes_[n]->attempts()) {
      const auto granted = granted_.find(key);
      const bool settled = granted != granted_.end() && granted->second.last_step == steps_ &&
                           now_ - granted->second.since > kQuiet;
      if (!quiet || !settled || !attempt.alive ||
          attempt.report.state() != v1::AttemptReport::RUNNING) {
        continue;
      }
      for (const Slice& slice : granted->second.grant.slices) {
        if (Index(slice.node) == n && slice.loader_workers != attempt.loader_workers) {
          Violated(fmt::format("job {} on n{} knows of {} loader workers and has {}", key.first, n,
                               attempt.loader_workers, slice.loader_workers));
        }
        result_.loaders_checked += Index(slice.node) == n ? 1 : 0;
      }
    }
  }
  After(seconds(7), [this] { CheckLoaders(); });
}

// ---------------------------------------------------------------------------------------- clients

void Simulation::Call(v1::ClientRequest request, std::function<void(const v1::ClientReply&)> then) {
  if (Chance(FaultsGoOn() ? loss_ : 0)) {
    return;
  }
  After(Delay(), [this, request = std::move(request), then = std::move(then)] {
    if (controller_) {
      calls_[++call_numbers_] = then;
      controller_->world().OnCall(call_numbers_, request);
      StepSoon();
    }
  });
}

void Simulation::SubmitJob(std::size_t index) {
  if (clients_[index].number) {
    return;
  }
  v1::ClientRequest request;
  *request.mutable_submit()->mutable_job() = clients_[index].job;
  request.mutable_submit()->set_client_token(clients_[index].token);
  request.mutable_submit()->set_wait_for_verdict(index % 3 == 0);
  Call(request, [this, index](const v1::ClientReply& reply) {
    if (reply.error().code() == kResourceExhausted) {
      return;  // the disk is full
    }
    if (reply.has_error()) {
      return Violated("a submission is refused: " + reply.error().message());
    }
    std::optional<std::uint64_t>& number = clients_[index].number;
    if (number && *number != reply.submit().job()) {
      Violated(
          fmt::format("token {} has given jobs {} and {}", index, *number, reply.submit().job()));
    }
    for (std::size_t other = 0; other < clients_.size(); ++other) {
      if (other != index && clients_[other].number == reply.submit().job()) {
        Violated(fmt::format("job {} has been given to two", reply.submit().job()));
      }
    }
    if (!number && Chance(0.2)) {
      After(Between(seconds(1), seconds(300)), [this, index] { ResizeJob(index); });
    }
    number = reply.submit().job();
    if (clients_[index].will_cancel) {
      After(Between(seconds(1), seconds(300)), [this, index] { CancelJob(index); });
    }
  });
  After(Between(seconds(2), seconds(6)),
        [this, index] { SubmitJob(index); });  // until acknowledged
}

void Simulation::ResizeJob(std::size_t index) {
  v1::ClientRequest request;
  request.mutable_resize()->set_job(*clients_[index].number);
  request.mutable_resize()->set_gpus(1 << Pick(4));
  Call(std::move(request), [](const v1::ClientReply& /*reply*/) {});
}

void Simulation::CancelJob(std::size_t index) {
  if (clients_[index].cancel_acknowledged) {
    return;
  }
  clients_[index].cancelled = true;
  v1::ClientRequest request;
  request.mutable_cancel()->set_job(*clients_[index].number);
  Call(request, [this, index](const v1::ClientReply& reply) {
    // Otherwise it had ended before.
    clients_[index].cancel_acknowledged = reply.error().code() != kResourceExhausted;
  });
  After(Between(seconds(2), seconds(6)), [this, index] { CancelJob(index); });
}

// What clients see must never go back.
void Simulation::CheckStatuses() {
  if (!controller_ || !controller_->journal_error().empty()) {
    return;
  }
  for (Client& client : clients_) {
    if (!client.number || *client.number > controller_->world().jobs()) {
      continue;
    }
    const v1::JobState state = controller_->world().StateOf(JobAt(*client.number - 1));
    const bool was_over = client.last >= v1::COMPLETED;
    if (was_over && state != client.last) {
      Violated(fmt::format("job {} was {} and is {}", *client.number,
                           v1::JobState_Name(client.last), v1::JobState_Name(state)));
    }
    if (state == v1::COMPLETED && checkpoints_[*client.number] < client.job.duration_s() - 1e-3) {
      Violated(fmt::format("job {} is completed with {} of {} done", *client.number,
                           checkpoints_[*client.number], client.job.duration_s()));
    }
    if (state == v1::FAILED) {
      Violated(fmt::format("job {} fails for a node's fault: {}", *client.number,
                           controller_->world().StatusOf(JobAt(*client.number - 1)).reason()));
    }
    if (state == v1::REJECTED) {
      Violated(fmt::format("job {} is {}: {}", *client.number, v1::JobState_Name(state),
                           controller_->world().StatusOf(JobAt(*client.number - 1)).reason()));
    }
    if (client.cancel_acknowledged && state < v1::COMPLETED) {
      Violated(fmt::format("job {} goes on after its cancellation", *client.number));
    }
    client.last = state;
  }
}

bool Simulation::AllOver() const {
  return !FaultsGoOn() && controller_ &&
         std::all_of(clients_.begin(), clients_.end(), [](const Client& client) {
           return client.number && client.last >= v1::COMPLETED;
         });
}

void Simulation::CheckEnd() {
  if (controller_) {
    for (const auto& [key, entry] : controller_->engine().measured()->book().entries()) {
      for (const profile::Samples& samples : entry.samples) {
        result_.measurements += static_cast<int>(samples.values().size());
      }
    }
  }
  for (const Client& client : clients_) {
    if (client.last == v1::COMPLETED) {
      ++result_.completed;
    } else if (client.last == v1::CANCELLED) {
      ++result_.cancelled;
    } else {
      Violated(fmt::format("policy {}: job {} has not ended: {}", policy_name_,
                           client.number.value_or(0), v1::JobState_Name(client.last)));
      if (client.number && controller_) {
        Trace(controller_->world().StatusOf(JobAt(*client.number - 1)).ShortDebugString());
      }
    }
    if (client.last == v1::CANCELLED && !client.cancelled) {
      Violated(fmt::format("job {} was never cancelled", client.number.value_or(0)));
    }
  }
}

void Simulation::UndrainAll() {
  loss_ = 0;
  for (const NodeSpec& node : cluster_.nodes) {
    v1::ClientRequest request;
    request.mutable_drain()->set_node(node.name);
    Call(std::move(request), [](const v1::ClientReply& /*reply*/) {});
  }
}

// Workers that are no pretence to the controller: their reports correct what it knows of the model.
void Simulation::MakeMeasured(v1::JobRequest& job) {
  job.set_model(fmt::format("m{}", Pick(2)));
  job.set_batch_size(32);
  job.set_iterations(job.duration_s());
  job.mutable_launch()->set_workers(v1::LaunchSpec::PER_NODE);
  job.mutable_launch()->add_command("train");
}

FaultResult Simulation::Run() {
  for (int i = 0; i < options_.jobs; ++i) {
    Client client{.token = "token-" + std::to_string(i)};
    client.job.set_gpus(1 << Pick(4));
    client.job.set_duration_s(Seconds(Between(seconds(20), seconds(400))));
    client.job.mutable_launch()->set_workers(v1::LaunchSpec::EMULATED);
    if (shares_gpus_ && policy_name_ != "company") {
      client.job.mutable_launch()->set_priority(static_cast<int>(Pick(2)));
      client.job.mutable_stages()->set_iteration_s(1);
      for (int stage = 0; stage < 3; ++stage) {
        client.job.mutable_stages()->add_stages_s(static_cast<double>(1 + Pick(9)) / 10);
      }
    }
    if (Chance(0.3) && policy_name_ != "company" && policy_name_ != "torchloader") {
      MakeMeasured(client.job);
    }
    if (policy_name_.starts_with("chronus") && Chance(0.5)) {
      client.job.set_deadline_s(client.job.duration_s() * (1 + static_cast<double>(Pick(20))));
    }
    if (Chance(0.5)) {
      const std::size_t set = Pick(6);
      v1::DataSet& data = *client.job.mutable_data_set();
      data.set_name(fmt::format("d{}", set));
      data.set_mib(static_cast<std::int64_t>(20 + 10 * set));
      data.set_home("/store/" + data.name());
    }
    client.will_cancel = Chance(0.1);
    client.job.mutable_launch()->set_max_restarts(workers_fail_ ? 1'000'000 : 0);
    clients_.push_back(std::move(client));
  }
  StartController();
  for (int node = 0; node < options_.nodes; ++node) {
    StartAgent(node);
  }
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    After(Between(Duration{0}, seconds(1500)), [this, i] { SubmitJob(i); });
  }
  PlanFault();
  AskForNodes();
  CheckLoaders();
  for (int again = 0; again < 10; ++again) {
    After(kFaultsUntil + seconds(60 * again + 1), [this] { UndrainAll(); });
  }
  while (!queue_.empty() && result_.violation.empty() && !AllOver() &&
         now_.time_since_epoch() < kLatest) {
    Entry next = queue_.top();
    queue_.pop();
    now_ = next.at;
    next.what();
  }
  if (result_.violation.empty()) {
    CheckEnd();
  }
  for (const std::unique_ptr<PretendedProcesses>& processes : processes_) {
    result_.turns += processes->turns();
  }
  result_.digest = controller_ ? controller_->digest() : "";
  return result_;
}

}  // namespace

FaultResult RunFaults(const FaultOptions& options) { return Simulation(options).Run(); }

}  // namespace trainyard
