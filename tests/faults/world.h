// SPDX-License-Identifier: Apache-2.0
// All of the pretended world: what happens in it, in the order of its time.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "faults/configurations.h"
#include "faults/coverage.h"
#include "faults/pretended_disk.h"
#include "faults/pretended_launch.h"
#include "faults/pretended_node.h"
#include "faults/simulation.h"
#include "faults/terms_book.h"
#include "faults/witness.h"
#include "live/agent/agent.h"
#include "live/controller.h"
#include "profile/measured_book.h"
#include "scenario/assembly.h"
#include "service/call_error.h"
#include "support/memory_trail.h"

namespace trainyard::faults {

using std::chrono::milliseconds;
using std::chrono::seconds;

inline constexpr Duration kFaultsUntil = seconds(2400);
inline constexpr Duration kLatest = seconds(60'000);
inline const int kResourceExhausted = service::NumberOf(ErrorCode::kResourceExhausted);
inline constexpr Duration kLease = seconds(60);
inline constexpr Duration kHeartbeat = seconds(5);
// A job that has GPUs on nodes where all is well starts within that; the longest pause after
// failures is five minutes, and a data set takes a minute and a half.
inline constexpr Duration kStranded = seconds(420);

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

inline constexpr std::uint64_t kNoJob = ~std::uint64_t{0};  // greater than each number of a job

struct Client {
  std::string token;
  v1::JobRequest job;
  Terms terms{};
  std::vector<std::int64_t> indices{};    // of the tasks of an array; empty: a job by itself
  int at_once = 0;                        // of these
  std::optional<std::uint64_t> number{};  // acknowledged; of the first task
  bool has_asked = false;
  bool will_cancel = false;
  std::uint64_t cancels = 0;  // that job
  bool cancels_all = false;   // all tasks of its array, by one call
  [[nodiscard]] bool Cancels(std::uint64_t job) const { return cancels_all || cancels == job; }
  bool cancelled = false;
  bool cancel_acknowledged = false;
  std::vector<v1::JobState> last{};  // of each task

  [[nodiscard]] std::size_t tasks() const { return std::max<std::size_t>(1, indices.size()); }
};

// Whether any other such policy may take its place in a running world.
[[nodiscard]] bool CanChange(const std::string& policy);

class World final : public live::LiveOutput {
 public:
  explicit World(const FaultOptions& options);

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
  void NoteEnd(int node, const AttemptKey& attempt) { witness_.End(node, attempt); }
  // Seconds since 1970, as the node's clock shows them.
  [[nodiscard]] double WallSeconds(int node) const {
    constexpr double kBegin = 1.6e9;
    return kBegin + Seconds(now_ + wall_clocks_[static_cast<std::size_t>(node)]);
  }
  // What hits an attempt that starts there now, if anything does.
  [[nodiscard]] std::optional<Sickness> SicknessAt(int node) {
    const Sickness& sickness = sick_[static_cast<std::size_t>(node)];
    return FaultsGoOn() && sickness.until > now_ && Chance(sickness.chance)
               ? std::optional(sickness)
               : std::nullopt;
  }
  // As the controller sees it.
  [[nodiscard]] bool AllNodesServe() const;
  void CountTune() { ++result_.tunes; }
  FaultResult& result() { return result_; }
  [[nodiscard]] bool FaultsGoOn() const { return now_.time_since_epoch() < kFaultsUntil; }
  [[nodiscard]] const PretendedProcesses& ProcessesOf(int node) const {
    return *processes_[static_cast<std::size_t>(node)];
  }
  // What the job's checkpoints hold; shared by all nodes, as a file system is.
  std::map<std::uint64_t, double>& checkpoints() { return checkpoints_; }
  Gang& GangOf(const v1::AttemptId& id) { return gangs_[{id.job(), id.attempt()}]; }
  void FinishIn(Duration time, AttemptKey key) {
    After(time + milliseconds(1), [this, key] { FinishGang(key); });
  }
  // The first rank ends first, or one of the others.
  void FinishGang(AttemptKey key) {
    for (std::size_t node = 0; node < processes_.size(); ++node) {
      if (launches_.StepOf(static_cast<int>(node), key) == LaunchStep::kMpiWorks) {
        After(Between(Duration{0}, milliseconds(500)),
              [this, node, key] { processes_[node]->Finish(key); });
      } else {
        processes_[node]->Finish(key);
      }
    }
  }
  PretendedLaunches& launches() { return launches_; }
  void FailForOthers(int node, AttemptKey key) {
    processes_[static_cast<std::size_t>(node)]->FailForOthers(key);
  }
  [[nodiscard]] const std::string& NameOf(int node) const {
    return cluster_.nodes[static_cast<std::size_t>(node)].name;
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
  // As an agent counts it, from the time that its node's clock showed when it was started.
  [[nodiscard]] TimePoint AgentTime(std::size_t node) const { return now_ + agent_clocks_[node]; }
  Duration Delay() {
    return Chance(0.05) ? Between(milliseconds(1), seconds(3))
                        : Between(milliseconds(1), milliseconds(20));
  }

  void Deliver(TimePoint& last, const std::function<void()>& deliver);
  void StartController();
  [[nodiscard]] profile::MeasuredBook MeasuredBefore() const;
  void UpgradeProgram();
  void NoteUpgrade(live::ControllerSetup& setup);
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
  void Insist(v1::ClientRequest request, std::function<void(const v1::ClientReply&)> then,
              std::shared_ptr<bool> done = std::make_shared<bool>(false));
  [[nodiscard]] bool IsSwallowed(const v1::ClientRequest& request) const;
  [[nodiscard]] v1::ClientReply AnswerTo(const v1::ClientRequest& request) const;
  void Garble(v1::ClientRequest& request) const;
  void MakeTerms(Client& client, int most_tasks);
  [[nodiscard]] std::vector<Need> PickNeeds(std::uint64_t before, std::string& name);
  void SubmitJob(std::size_t client);
  void TakeNumber(std::size_t client, const v1::SubmitReply& reply);
  void ResizeJob(std::uint64_t job);
  void CancelJob(std::size_t client);
  void ChangeJob(std::uint64_t job);
  void ChangeAgain(std::uint64_t job);
  void HoldJob(std::uint64_t job);
  void ReleaseJob(std::uint64_t job);
  void RequeueJob(std::uint64_t job, bool hold);
  void UpdateJob(std::uint64_t job);
  // What an update names besides time and priority.
  struct Changes {
    bool begin = false;
    bool needs = false;
    std::optional<double> begin_s{};
  };
  void ForAllUpdated(std::uint64_t job, const Changes& changes, const Terms& terms,
                     const std::function<void(std::uint64_t, const Terms&)>& then);
  [[nodiscard]] const Client* ClientOf(std::uint64_t job) const;  // null: not acknowledged
  // Empty: nothing is wrong.
  void Found(const std::string& wrong) {
    if (!wrong.empty()) {
      Violated(wrong);
    }
  }
  void CheckStatuses();
  void CheckStatus(Client& client, std::size_t task);
  void CheckLimits();
  void AskForJobs();
  void CountEnd(const Client& client, std::size_t task);
  void NoteGrants();
  [[nodiscard]] bool MayShare(AttemptKey one, AttemptKey other) const;
  void UndrainAll();
  // An operator pauses decisions or closes the controller at times; in one world of four.
  void PlanSwitches();
  void Switch(bool pauses, bool on);
  // An admin puts another policy in force at times, or removes a node and lets it come back; in
  // half of the worlds whose policy may have any other in its place.
  void PlanConfigurations();
  [[nodiscard]] int PartedNodes() const;
  void ChangeConfiguration(FaultConfiguration next, bool insists);
  // What an admin has been told of is in force, or something later.
  void CheckConfiguration();
  void CheckPartitions(const engine::Configuration& now);
  // While decisions are paused none is made, while the controller is closed it has no further job,
  // and what an operator has been told is so.
  void CheckSwitches();
  void MakeMeasured(v1::JobRequest& job);
  void MakeRequest(v1::JobRequest& job);
  void FallSick(std::size_t node);
  [[nodiscard]] bool MayLoseSupervisors(std::size_t node, TimePoint until);
  void CrashNode(std::size_t node);
  void CutOff(std::size_t node);
  void JumpClock(std::size_t node);
  void DrainOrNot(std::size_t node);
  [[nodiscard]] bool LeavesAlone(const v1::NodeStatus& node) const;
  void AskForNodes();
  void CheckLoaders();
  void CheckEnd();
  void CheckUsage();
  void ChoosePolicy();
  void CheckDecisions();
  void CheckVictim(const Accounts::Victim& victim, const Accounts::Step& step);
  void CheckNewcomer(JobId job, NodeId node, TimePoint decided);
  void CheckNodesAlive();
  void CheckStranded();
  [[nodiscard]] std::optional<TimePoint> CalmSince(std::size_t node) const;
  void CountStates(FaultKind fault, std::optional<std::size_t> node);
  [[nodiscard]] Starter StarterOfJob(std::uint64_t number);
  [[nodiscard]] bool AllOver() const;

  FaultOptions options_;
  std::mt19937_64 random_;
  std::minstd_rand finishes_;  // whether drains let jobs finish
  std::minstd_rand upgrades_;  // whether another program starts; of its own
  PretendedDisk disk_;
  Cluster cluster_;
  std::string policy_name_;
  std::string placement_name_;
  // Null: nobody changes it.
  std::unique_ptr<FaultConfigurations> configurations_;
  std::uint64_t configured_ = 0;  // the number of which an admin has been told
  // The configuration of the last look at grants (none: of another start of the controller), and
  // these.
  std::optional<std::uint64_t> parted_by_{};
  std::vector<Slices> seen_grants_{};
  scenario::Assembly parts_;
  bool shares_gpus_ = false;
  live::SnapshotRules snapshots_;
  live::MemoryTrail trail_;
  std::string written_by_;  // the program of the last controller
  int upgraded_ = 0;        // how often that has been another one

  std::priority_queue<Entry> queue_;
  std::uint64_t order_ = 0;
  TimePoint now_{};
  std::unique_ptr<live::Controller> controller_;
  std::uint64_t controller_life_ = 0;
  Duration clock_offset_{0};
  bool step_planned_ = false;
  std::uint64_t controller_steps_ = 0;
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
  std::map<AttemptKey, Gang> gangs_;
  PretendedLaunches launches_;
  std::map<std::uint64_t, Starter> starters_;  // by job, those that have been asked for
  std::map<AttemptKey, Granted> granted_;      // not those for itself
  std::uint64_t steps_ = 0;
  TimePoint last_fault_{};
  std::vector<Sickness> sick_;                              // by node
  std::vector<std::optional<TimePoint>> lost_supervisors_;  // likewise: until when it loses them
  bool lacks_programs_ = false;  // the last node, at times; then nobody else drains nodes
  bool large_ = false;           // most jobs have launchers and lie on several nodes
  bool workers_fail_ = false;    // at times on sick nodes, which is no failure of the controller's
  std::set<std::string> drained_;
  struct Switched {
    bool on = false;                     // after the last step of this controller
    std::int64_t count = 0;              // of decisions or jobs, then
    std::optional<bool> acknowledged{};  // none: another call is on its way
    int unanswered = 0;                  // calls: one may overtake another
  };
  Switched paused_;
  Switched closed_;
  double loss_ = 0.02;
  Witness witness_;
  Accounts accounts_;
  TermsBook book_;
  std::vector<std::uint64_t> rejected_;    // jobs that have ended so, and are to be checked
  std::vector<std::uint64_t> over_limit_;  // jobs that have ended so, and are to be checked
  std::vector<Duration> wall_clocks_;      // of nodes, and how wrong they are
  std::vector<Duration> agent_clocks_;     // that at the start of the agent
  TimePoint controller_since_{};
  std::vector<TimePoint> heard_;  // by the controller, by node, in its time; or that of its start
  TimePoint full_until_{};
  std::vector<TimePoint> drained_at_;            // when the operator's word came
  std::vector<bool> alive_at_start_;             // nodes, as the controller began with them
  std::map<std::uint64_t, TimePoint> stranded_;  // jobs with GPUs and without workers, since when
  TimePoint idle_since_ = kEndOfTime;            // jobs wait and all nodes idle
  FaultResult result_;
};

}  // namespace trainyard::faults
