// SPDX-License-Identifier: Apache-2.0
// The scheduler as a deterministic state machine: facts in, actions out. It has no clock, thread,
// file, socket or random number of its own, and does not know what kind of world lies under it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "engine/decision_clock.h"
#include "engine/gpu_books.h"
#include "engine/job_record.h"
#include "engine/ledger.h"
#include "engine/ordered_queue.h"
#include "engine/packing.h"
#include "engine/selection.h"
#include "engine/type_choices.h"
#include "model/data_caches.h"
#include "profile/overhead_model.h"
#include "trainyard/component.h"
#include "trainyard/event.h"
#include "trainyard/rules.h"
#include "trainyard/status.h"

namespace trainyard {

// What schedules: one of ordering and policy, a placement, an admission, perhaps a grouping and a
// tuning. Not owned.
struct Bundle {
  const Ordering* ordering = nullptr;
  const Policy* policy = nullptr;
  const Placement* placement = nullptr;
  const Admission* admission = nullptr;
  const Grouping* grouping = nullptr;  // beside an ordering; null: none
  const Tuning* tuning = nullptr;      // null: none
  std::optional<Walk> walk;            // instead of the ordering's own
  bool plain_walk = false;             // the oracle instead of the incremental walk (tests)

  [[nodiscard]] Needs needs() const {
    Needs needs = ordering != nullptr ? ordering->needs() : policy->needs();
    needs.shares_gpus = needs.shares_gpus || grouping != nullptr;
    return needs;
  }
};

// One decision, as observers see it.
struct DecisionSample {
  TimePoint now{};
  std::int64_t gpus_used = 0;
  std::int64_t jobs_running = 0;
  std::int64_t jobs_waiting = 0;
  std::int64_t gpus_up = 0;
};

class DecisionObserver {
 public:
  virtual ~DecisionObserver() = default;
  virtual void OnDecision(const DecisionSample& sample) = 0;
  // The end of a step, with or without a decision; the actions are all of it. Settle is one
  // without any.
  virtual void OnStep(TimePoint /*now*/, std::span<const Action> /*actions*/) {}
  // Which bundle the selector put in charge at `now`.
  virtual void OnChoice(TimePoint /*now*/, const Selector::Choice& /*choice*/) {}
};

class Engine;
// Simulates forks of an engine; see src/forecast.
class ForkRunner {
 public:
  virtual ~ForkRunner() = default;
  // Runs the fork until nothing happens any more or `until` has passed.
  virtual void Run(Engine& fork, std::optional<TimePoint> until) const = 0;
};

struct EngineSetup {
  Rules rules{};
  Cluster cluster{};
  Bundle bundle{};  // with a selector: the one in charge until it chooses
  // With a selector: what it chooses among, and what simulates forks for it. Not owned.
  const Selector* selector = nullptr;
  std::vector<Bundle> candidates{};
  const ForkRunner* forks = nullptr;
  const ExecutionModel* rates = nullptr;  // must outlive the engine
  OverheadModel overheads{};
  DecisionObserver* observer = nullptr;  // may be null
};

// What the engine knows of jobs and nodes, whoever decides. A fork takes it over as a whole.
class EngineState {
 protected:
  std::vector<JobRecord> records_;            // by JobId
  std::vector<JobId> running_;                // jobs with GPUs, in no particular order
  std::vector<std::uint32_t> running_place_;  // by JobId
  mutable std::vector<JobId> live_;           // may hold ended jobs, see live_stale_
  mutable bool live_stale_ = false;
  std::vector<JobId> unjudged_;
  std::vector<JobId> resized_;  // since the last decision
  std::set<JobId> held_;        // live, but not to be scheduled: not in live_ and not in the order
  IndexedHeap ends_;
  HeapPositions end_positions_;
  std::set<std::tuple<NodeId, int, int>> warm_sets_;  // Debt::warm_sets: first GPU and size

  TimePoint snapshot_now_{};
  std::optional<TimePoint> first_fact_;  // the first undecided one
  std::optional<TimePoint> last_fact_;   // and the last
  std::optional<TimePoint> wake_at_;
  bool submits_to_come_ = true;
  std::uint64_t arrivals_ = 0;
  std::int64_t decisions_ = 0;
  std::int64_t events_ = 0;
  std::int64_t waiting_ = 0;
  std::int64_t started_live_ = 0;  // jobs that have started and not ended
  std::int64_t gpus_asked_ = 0;    // by live jobs
  int gpus_up_ = 0;
  std::vector<bool> nodes_up_;
  std::uint64_t node_changes_ = 0;

  // All but the records and what follows from the rest.
  void Exchange(StateStream& state);
};

class Engine final : public JobTable, private RestartCosts, private EngineState {
 public:
  explicit Engine(EngineSetup setup);
  ~Engine() override;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // The same jobs with the same progress at the same time, decided by `bundle` from now on, without
  // arrivals to come and without a selector. What components remember begins afresh. This engine
  // must outlive it.
  [[nodiscard]] std::unique_ptr<Engine> Fork(const Bundle& bundle) const;

  // Takes the facts of a batch and decides if an instant has come. The actions are valid until the
  // next call. REQUIRES: time does not go back. An error means that a component proposed something
  // illegal; it names the component, the job and the node.
  [[nodiscard]] Result<std::span<const Action>> Step(const Batch& batch);

  // When to call Step at the latest, if no fact comes before.
  [[nodiscard]] std::optional<TimePoint> next_wakeup() const;

  // For a world that has no jobs of its own: when the next job ends, as the ledger predicts it,
  // and the ends that have come by then (each is given once).
  [[nodiscard]] std::optional<TimePoint> next_end() const;
  [[nodiscard]] std::vector<Event> TakeEnds(TimePoint now);

  // Every job submitted so far, by JobId; jobs not yet submitted have phase kUnknown.
  [[nodiscard]] std::span<const JobRecord> records() const { return records_; }
  // For going on at another time as if there had been no break: every later decision is the same.
  // The record of one job, which does not change any more once the job has ended; and everything
  // else. Reading: into an engine as it is made, with the same set-up, first all records. False:
  // what a component remembers cannot be saved, or it cannot be read (state.good() says so), and
  // the engine must not be used any more.
  void ExchangeJob(JobId job, StateStream& state);
  [[nodiscard]] bool Exchange(StateStream& state);

  // Progress up to the present, for reports of jobs that have not ended.
  void Settle(TimePoint now);
  // Why demand classes wait, as of the last decision.
  [[nodiscard]] std::span<const Blocked> blocked() const { return blocked_; }
  // That of the job's class; null: it does not wait, or the policy left it out.
  [[nodiscard]] const Blocked* blocked(JobId job) const;
  [[nodiscard]] std::int64_t decisions() const { return decisions_; }
  [[nodiscard]] std::int64_t events() const { return events_; }
  [[nodiscard]] const Cluster& cluster() const { return cluster_; }
  // Whether the bundle in charge keeps a job away from the nodes that it avoids. One that chooses
  // for all jobs at once, or names GPUs itself, does not look.
  [[nodiscard]] bool keeps_away() const {
    return packs_grants() && !packing_.places_in_order() &&
           (walk_.keep_running || !packing_.places_all());
  }

 private:
  // JobTable, as of snapshot_now_.
  [[nodiscard]] std::span<const JobId> live() const override;
  [[nodiscard]] JobView at(JobId job) const override;
  [[nodiscard]] const Grant& grant(JobId job) const override { return records_[Index(job)].grant; }
  [[nodiscard]] const JobSpec& spec(JobId job) const override { return *records_[Index(job)].spec; }
  [[nodiscard]] bool started(JobId job) const override { return records_[Index(job)].started; }
  [[nodiscard]] double work_left(JobId job) const override;

  // RestartCosts
  [[nodiscard]] Duration Of(const JobSpec& job, Change change, int gpus) const override;

  void Take(const Event& event);
  void TakeSubmit(const Event& event);
  void TakeEnd(const Event& event);
  void TakeFailure(const Event& event);
  void Leave(JobId job, JobPhase phase);
  void TakeProgress(const Event& event);
  void TakeReported(const Event& event);
  void TakeResize(const Event& event);
  void TakeNode(const Event& event);
  void TakeNodeDown(NodeId node, bool loses_work);
  void TakeGpus(JobId job, bool loses_work);
  void TakeCancel(const Event& event);
  void TakeBarred(const Event& event);
  void Hold(JobId job, bool held);
  void Requeue(JobId job);
  [[nodiscard]] bool InstantHasCome(const Batch& batch) const;
  [[nodiscard]] bool SubmitIsLone() const;
  [[nodiscard]] bool EndIsLone() const;
  [[nodiscard]] bool NoEndsToCome() const;
  [[nodiscard]] std::optional<TimePoint> FactInstant() const;
  void Undecided(TimePoint at);

  [[nodiscard]] EngineSetup SetupOfFork(const Bundle& bundle) const;
  void OpenBundle();
  void OpenPacking();
  void Adopt();
  [[nodiscard]] bool ExchangeMemories(StateStream& state);
  void Resume();
  [[nodiscard]] bool IsPossible() const;
  void ExpectTheLate();
  class Foresight;
  void ChooseBundle(TimePoint now);

  Status Decide(TimePoint now);
  void BringUpToDate(TimePoint now);
  void Judge(const Snapshot& snapshot);
  void Apply(JobId job, const Verdict& verdict, TimePoint now);
  void ApplyAll(std::span<const Verdict> verdicts, TimePoint now);
  [[nodiscard]] Status CheckVerdicts(std::span<const Verdict> verdicts);
  [[nodiscard]] Result<Selection> Select(const Snapshot& snapshot);
  [[nodiscard]] Selection SelectOfOrdering(const Snapshot& snapshot);
  [[nodiscard]] Result<Selection> SelectOfPolicy(const Snapshot& snapshot);
  [[nodiscard]] std::vector<Demand>::iterator KeptFirst(std::vector<Demand>& demands);
  [[nodiscard]] Selection PlaceOthers(std::vector<Demand> demands, const Walk& walk);
  [[nodiscard]] static bool Stays(const Demand& demand, const Grant& held);
  void Arrange(std::vector<Demand>& demands, const Walk& walk);
  [[nodiscard]] std::vector<JobId> RunningUnseen(std::uint32_t mark) const;
  std::vector<JobId> LoosenOthers(std::uint32_t mark);
  [[nodiscard]] Selection PlaceCounted(const Selection& selection);
  [[nodiscard]] Result<Selection> PlaceAll(std::vector<Demand> demands);
  [[nodiscard]] Result<Selection> PlaceInOrder(std::vector<Demand> demands, const Walk& walk);
  [[nodiscard]] Result<Selection> PlaceList(std::span<const OrderedQueue::Ranked> list);
  void ForgetPlaced();
  [[nodiscard]] bool StaysPlaced(std::size_t same, std::size_t size) const;
  [[nodiscard]] Result<Selection> PlaceBehind(std::size_t same);
  [[nodiscard]] Selection Pack();
  void PackMoved(Selection& selection);
  void DropUnasked(Selection& selection);
  [[nodiscard]] std::uint32_t MarkOfDecision();
  [[nodiscard]] std::vector<Demand> FitByCount(std::span<const OrderedQueue::Ranked> list);
  void PackAll(Selection& selection);
  void AddPlaced(std::size_t number, Selection& selection);
  [[nodiscard]] Result<Selection> SelectInOrder(const Snapshot& snapshot);
  [[nodiscard]] Result<Selection> SelectGroups(const Snapshot& snapshot);
  [[nodiscard]] Result<Selection> PlaceProposed(std::vector<Demand> demands, const Walk& walk);
  // Whether the packing holds what the jobs hold; otherwise it is empty between decisions: what is
  // shared has no place in it, and where the policy names GPUs nobody chooses.
  [[nodiscard]] bool packs_grants() const { return !needs_.shares_gpus && !needs_.own_slices; }
  [[nodiscard]] Result<Selection> TakeNamed(std::vector<Demand> demands);
  [[nodiscard]] Status CheckNamed(const Demand& demand) const;
  [[nodiscard]] Status CheckSharing(const Demand& demand, std::uint32_t mark);
  [[nodiscard]] Error NamedTwice(JobId job) const;
  [[nodiscard]] std::size_t FirstEnd() const;
  [[nodiscard]] TimePoint JoinedUntil(TimePoint first) const;
  [[nodiscard]] bool IsLive(JobId job) const;
  [[nodiscard]] Status CheckLive(JobId job, std::string_view to) const;
  [[nodiscard]] Status CheckDemands(std::span<const Demand> demands);
  [[nodiscard]] Error Broken(JobId job, const std::string& what) const;
  void AddKept(Selection& selection) const;
  void Tune(Selection& selection, const Snapshot& snapshot);
  void DropAll(const Selection& selection, TimePoint now);
  [[nodiscard]] Status Perform(Selection selection, TimePoint now);
  [[nodiscard]] Status CheckGrant(JobId job, const Grant& grant);
  void Give(Placed& placed, TimePoint now);
  Action& Act(ActionKind kind, JobId job);
  void Drop(JobId job, TimePoint now);
  void Run(JobRecord& job);
  void MeetNeighbours(TimePoint now);
  [[nodiscard]] std::vector<const JobSpec*> SpecsOf(std::span<const JobId> jobs) const;
  [[nodiscard]] Duration ChangeCost(const JobSpec& job, Change change, int gpus) const;
  [[nodiscard]] bool Charges(Change change) const;
  void Charge(JobRecord& job, Change change);
  void Price(JobRecord& job) const;
  [[nodiscard]] bool counts_restarts() const {
    return rules_.preemption.rule == Preemption::Rule::kSound;
  }
  [[nodiscard]] Duration StayOf(const JobRecord& job) const;
  void PutStaysFirst(std::vector<Demand>& demands) const;
  void StartData(JobRecord& job, Change change);
  void StopData(JobRecord& job);
  template <typename CostOf>
  [[nodiscard]] Duration GroupCost(const JobRecord& job, CostOf cost_of) const;
  void ChargeAndPredict(TimePoint now);
  void ChargeAll(bool restart);
  [[nodiscard]] bool WarmsUp(const Grant& grant);
  void Predict(JobId job, TimePoint now, bool charge_counts);
  void RegisterPlannedEnds();
  [[nodiscard]] bool EndIsFiled(JobId job) const;
  void FileEnd(JobId job, TimePoint before);
  void MarkStarted(JobId job, TimePoint now);
  void ForgetEnd(JobId job);
  [[nodiscard]] bool IsRestartInstant() const;
  void SetRunning(JobId job, bool running);
  void Unpack(const Grant& grant);
  void Observe(TimePoint now);
  [[nodiscard]] Snapshot MakeSnapshot(TimePoint now) const;
  [[nodiscard]] JobRecord& record(JobId job) { return records_[Index(job)]; }
  [[nodiscard]] std::string_view DeciderName() const;
  [[nodiscard]] bool EndsSooner(std::size_t a, std::size_t b) const;

  const Rules rules_;
  const Cluster cluster_;
  Bundle bundle_;
  Walk walk_;
  const ExecutionModel& rates_;
  const OverheadModel overheads_;
  DecisionObserver* const observer_;
  Needs needs_;
  const Selector* const selector_;
  const std::vector<Bundle> candidates_;
  const ForkRunner* const forks_;
  std::size_t in_charge_ = 0;  // of the candidates
  Ledger ledger_;

  InstantClock clock_;
  DataCaches data_;
  TypeChoices types_;
  Packing packing_;
  std::optional<Packing> counting_;  // Walk::count_first
  std::unique_ptr<OrderedQueue> queue_;
  std::unique_ptr<Memory> policy_memory_;
  std::unique_ptr<Memory> admission_memory_;
  std::unique_ptr<Memory> placement_memory_;
  std::unique_ptr<Memory> grouping_memory_;

  GpuBooks books_;
  std::vector<Action> actions_;
  std::vector<JobId> changed_;        // grants that differ since the last decision
  std::vector<std::uint32_t> seen_;   // by JobId: number of the decision that placed it last
  std::vector<std::uint32_t> asked_;  // by JobId: number of the decision that demanded it last
  std::vector<Blocked> blocked_;
  // What was placed last by the placement's own walk; empty when nodes have changed since.
  std::vector<Demand> placed_;
  std::vector<Slices> placed_slices_;
  std::vector<Blocked> placed_blocked_;
  bool is_as_placed_ = false;             // nobody has lost GPUs since
  std::vector<PlannedEnd> planned_ends_;  // of the decision at hand
  std::vector<Demand> scratch_demands_;   // empty between calls

  TimePoint first_end_ = kEndOfTime;  // of the ends taken last; see Accrual::true_instants
  double first_end_early_ = 0;
  const int all_gpus_;
  const Resources capacity_;  // of all nodes
};

}  // namespace trainyard
