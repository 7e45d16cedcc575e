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
#include <variant>
#include <vector>

#include "engine/decision_clock.h"
#include "engine/job_record.h"
#include "engine/ledger.h"
#include "engine/ordered_queue.h"
#include "engine/packing.h"
#include "engine/selection.h"
#include "profile/overhead_model.h"
#include "trainyard/component.h"
#include "trainyard/event.h"
#include "trainyard/rules.h"
#include "trainyard/status.h"

namespace trainyard {

// What schedules: one of ordering and policy, a placement, an admission. Not owned.
struct Bundle {
  const Ordering* ordering = nullptr;
  const Policy* policy = nullptr;
  const Placement* placement = nullptr;
  const Admission* admission = nullptr;
  std::optional<Walk> walk;  // instead of the ordering's own
  bool plain_walk = false;   // the oracle instead of the incremental walk (tests)

  [[nodiscard]] Needs needs() const {
    return ordering != nullptr ? ordering->needs() : policy->needs();
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
};

struct EngineSetup {
  Rules rules{};
  Cluster cluster{};
  Bundle bundle{};
  const ExecutionModel* rates = nullptr;  // must outlive the engine
  OverheadModel overheads{};
  DecisionObserver* observer = nullptr;  // may be null
};

class Engine final : public JobTable, private RestartCosts {
 public:
  explicit Engine(EngineSetup setup);
  ~Engine() override;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

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
  // Progress up to the present, for reports of jobs that have not ended.
  void Settle(TimePoint now);
  // Why demand classes wait, as of the last decision.
  [[nodiscard]] std::span<const Blocked> blocked() const { return blocked_; }
  [[nodiscard]] std::int64_t decisions() const { return decisions_; }
  [[nodiscard]] std::int64_t events() const { return events_; }
  [[nodiscard]] const Cluster& cluster() const { return cluster_; }

 private:
  // JobTable, as of snapshot_now_.
  [[nodiscard]] std::span<const JobId> live() const override;
  [[nodiscard]] JobView at(JobId job) const override;
  [[nodiscard]] const Grant& grant(JobId job) const override { return records_[Index(job)].grant; }
  [[nodiscard]] const JobSpec& spec(JobId job) const override { return *records_[Index(job)].spec; }
  [[nodiscard]] bool started(JobId job) const override { return records_[Index(job)].started; }

  // RestartCosts
  [[nodiscard]] Duration Of(const JobSpec& job, Change change, int gpus) const override;

  void Take(const Event& event);
  void TakeSubmit(const Event& event);
  void TakeEnd(const Event& event);
  void TakeFailure(const Event& event);
  void Leave(JobId job, JobPhase phase);
  void TakeProgress(const Event& event);
  void TakeResize(const Event& event);
  void TakeNode(const Event& event);
  void TakeNodeDown(NodeId node, bool loses_work);
  void TakeGpus(JobId job, bool loses_work);
  void TakeCancel(const Event& event);
  [[nodiscard]] bool InstantHasCome(const Batch& batch) const;
  [[nodiscard]] bool SubmitIsLone() const;
  [[nodiscard]] bool EndIsLone() const;
  [[nodiscard]] bool NoEndsToCome() const;
  [[nodiscard]] std::optional<TimePoint> FactInstant() const;
  void Undecided(TimePoint at);

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
  [[nodiscard]] Selection PlaceCounted(const Selection& selection);
  [[nodiscard]] Result<Selection> PlaceAll(std::span<const Demand> demands);
  [[nodiscard]] bool IsLive(JobId job) const;
  [[nodiscard]] Status CheckLive(JobId job, std::string_view to) const;
  [[nodiscard]] Status CheckDemands(std::span<const Demand> demands);
  [[nodiscard]] Error Broken(JobId job, const std::string& what) const;
  [[nodiscard]] Status Perform(Selection selection, TimePoint now);
  [[nodiscard]] Status CheckGrant(JobId job, const Grant& grant) const;
  void Give(JobId job, Grant grant, TimePoint now);
  void Drop(JobId job, TimePoint now);
  void Own(const Grant& grant);
  void Disown(const Grant& grant);
  void Charge(JobRecord& job, Change change);
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
  const Bundle bundle_;
  const Walk walk_;
  const ExecutionModel& rates_;
  const OverheadModel overheads_;
  DecisionObserver* const observer_;
  const Needs needs_;
  const Ledger ledger_;

  InstantClock clock_;
  Packing packing_;
  std::optional<Packing> counting_;  // Walk::count_first
  std::unique_ptr<OrderedQueue> queue_;
  std::unique_ptr<Memory> policy_memory_;
  std::unique_ptr<Memory> admission_memory_;
  std::unique_ptr<Memory> placement_memory_;

  std::vector<JobRecord> records_;    // by JobId
  std::vector<std::uint64_t> taken_;  // GPUs by node: verify's own books, apart from the packing's
  std::vector<JobId> running_;        // jobs with GPUs, in no particular order
  std::vector<std::uint32_t> running_place_;  // by JobId
  mutable std::vector<JobId> live_;           // may hold ended jobs, see live_stale_
  mutable bool live_stale_ = false;
  std::vector<JobId> unjudged_;
  std::vector<JobId> resized_;  // since the last decision
  IndexedHeap ends_;
  HeapPositions end_positions_;
  std::vector<Action> actions_;
  std::vector<JobId> changed_;        // grants that differ since the last decision
  std::vector<std::uint32_t> seen_;   // by JobId: number of the decision that placed it last
  std::vector<std::uint32_t> asked_;  // by JobId: number of the decision that demanded it last
  std::vector<Blocked> blocked_;
  std::vector<PlannedEnd> planned_ends_;  // of the decision at hand
  std::vector<Demand> scratch_demands_;   // empty between calls
  std::vector<std::int64_t> first_gpu_;   // by node: GPUs of all nodes before it
  std::set<std::int64_t> warm_sets_;      // Debt::warm_sets: first GPU and size

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
  const int all_gpus_;
  int gpus_used_ = 0;
  int gpus_up_ = 0;
  std::vector<bool> nodes_up_;
  std::uint64_t node_changes_ = 0;
};

}  // namespace trainyard
