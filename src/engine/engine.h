// SPDX-License-Identifier: Apache-2.0
// The scheduler as a deterministic state machine: facts in, actions out. It has no clock, thread,
// file, socket or random number of its own, and does not know what kind of world lies under it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/books/nodes_up.h"
#include "engine/configuration.h"
#include "engine/eligibility.h"
#include "engine/parts.h"
#include "model/event.h"
#include "model/job_numbers.h"
#include "model/job_records.h"
#include "profile/measured_model.h"
#include "trainyard/component.h"
#include "trainyard/status.h"

namespace trainyard::engine {

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
  virtual void OnStep(TimePoint /*now*/, std::span<const model::Action> /*actions*/) {}
  // Which bundle the selector put in charge at `now`.
  virtual void OnChoice(TimePoint /*now*/, const Selector::Choice& /*choice*/) {}
};

class Engine;
// Simulates forks of an engine; see src/world.
class ForkRunner {
 public:
  virtual ~ForkRunner() = default;
  // Runs the fork until nothing happens any more or `until` has passed. An error: a decision of the
  // fork was refused.
  [[nodiscard]] virtual Status Run(Engine& fork, std::optional<TimePoint> until) const = 0;
};

struct EngineSetup {
  std::shared_ptr<const Configuration> configuration{};
  // What the cluster has measured before; it goes before the rates and overheads of the
  // configuration, and kMeasured adds to it. None: nothing is corrected, and such facts mean
  // nothing.
  std::optional<profile::MeasuredBook> measured{};
  DecisionObserver* observer = nullptr;  // may be null
  // By which users know jobs, and dependencies name them. Must outlive the engine.
  const model::JobNumbers* numbers = &model::JobNumbers::Counted();
  // For facts of kConfigured; null: there are none. Must outlive the engine.
  const ConfigurationSource* configurations = nullptr;
};

class Engine final {
 public:
  explicit Engine(EngineSetup setup);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // An engine that goes on exactly as this one would: given the same batches, it takes the same
  // actions. It has no observer. What this engine's set-up points to must outlive the fork, which
  // shares the configuration and the jobs' specifications, both constant: it may be used by another
  // thread. O(jobs submitted so far).
  [[nodiscard]] std::unique_ptr<Engine> Fork() const;
  // `bundle` schedules from now on, and no selector has a say any more. Nothing changes where it is
  // the bundle in charge; otherwise components begin with empty memories, and the next decision is
  // due at once.
  void DecideBy(const scheduler::Bundle& bundle);
  // `next` takes the place of the present configuration. Jobs keep their progress, what they owe
  // and, where these are still there and may be held so, their GPUs; components begin with empty
  // memories. From here on the engine decides as one that is made with `next` and has the same
  // records and nodes. Nodes that are new, or have other
  // GPUs, are down. The next decision is due at once.
  // REQUIRES: `next` may follow the present one (Configuration). O(jobs submitted so far).
  void Reconfigure(SharedConfiguration next);
  // The jobs whose ends were predicted for a time that has passed, as happens in a live cluster,
  // end now. For forks whose world has no jobs of its own.
  void EndOverdueJobs();

  // Takes the facts of a batch and decides if an instant has come. Where the batch says what was
  // decided on it, that is decided, and no component is asked; nor may one be after it before
  // kUpgraded, with which components begin anew. The actions are valid until the
  // next call. REQUIRES: time does not go back. An error means that a component proposed something
  // illegal; it names the component, the job and the node.
  [[nodiscard]] Result<std::span<const model::Action>> Step(const model::Batch& batch);

  // When to call Step at the latest, if no fact comes before.
  [[nodiscard]] std::optional<TimePoint> next_wakeup() const;

  // For a world that has no jobs of its own: when the next job ends, as the ledger predicts it,
  // and the ends that have come by then (each is given once).
  [[nodiscard]] std::optional<TimePoint> next_end() const;
  [[nodiscard]] std::vector<model::Event> TakeEnds(TimePoint now);

  // The time of the last step.
  [[nodiscard]] TimePoint now() const { return now_; }
  // Every job submitted so far, by JobId; jobs not yet submitted have phase kUnknown.
  [[nodiscard]] std::span<const model::JobRecord> records() const { return jobs_.records(); }
  // For going on at another time as if there had been no break: every later decision is the same.
  // The record of one job, which does not change any more once the job has ended; and everything
  // else. Reading: into an engine as it is made, with the same set-up, first all records. Unless
  // state.good() afterwards, the engine must not be used any more.
  void SerializeJob(JobId job, StateStream& state) { jobs_.SerializeJob(job, state); }
  void Serialize(StateStream& state);
  // What nodes have told of their caches, which snapshots before format 7 have not.
  void SerializeTold(StateStream& state) { parts_->charges.data().SerializeTold(state); }
  // What has been measured, which snapshots before format 8 have not.
  void SerializeMeasured(StateStream& state);
  // Whether decisions are paused, which snapshots before format 12 have not.
  void SerializePaused(StateStream& state) { state(paused_); }

  // Progress up to the present, for reports of jobs that have not ended.
  void Settle(TimePoint now);
  // The job's progress at `now`; of one that has ended, at its end. REQUIRES: now >= now().
  [[nodiscard]] model::Progress ProgressOf(JobId job, TimePoint now) const;
  // Whether the job has run longer than it has stated, and counts as longer (kOverrun).
  [[nodiscard]] bool HasOverrun(JobId job) const { return parts_->ledger.IsExtended(jobs_[job]); }
  // When the next of the running jobs should end by what is known of them, though it be past; and
  // those that should have ended by `now`, ascending. O(1); O(running).
  [[nodiscard]] std::optional<TimePoint> first_forecast() const;
  [[nodiscard]] std::vector<JobId> OverdueBy(TimePoint now) const;
  // Why classes of demands wait, as of the last decision.
  [[nodiscard]] std::span<const model::Blocked> blocked() const {
    return parts_->scheduler.blocked();
  }
  // Of the demand class of the job (model::Blocked::kind); nothing: there has been no such demand.
  [[nodiscard]] std::optional<int> DemandKindOf(JobId job) const;
  // How many there have been.
  [[nodiscard]] std::size_t demand_kinds() const { return parts_->choices.kinds(); }
  // The jobs that wait, in the order in which the policy serves them; empty: it keeps none.
  // O(live jobs log live jobs).
  [[nodiscard]] std::vector<JobId> WaitingInOrder() const {
    return parts_->scheduler.WaitingInOrder(now_);
  }
  // Whether the job is not to be judged yet.
  [[nodiscard]] bool IsDeferred(JobId job) const { return jobs_.deferred().contains(job); }
  // What the job's own terms, or those of its array, defer it for, if they do.
  [[nodiscard]] Deferral TermsOf(JobId job) const { return eligibility_.WhyDeferred(job); }
  // From now on `touched` is told of each job of which something may have changed but that time
  // passes, also by another configuration. Forks tell nobody. Must outlive the engine.
  void Watch(model::TouchedIds<JobId>* touched) { jobs_.Watch(touched); }
  // The first task of the job's array, and its own index there. Nothing: it is in none.
  [[nodiscard]] std::optional<std::pair<JobId, std::int64_t>> TaskOf(JobId job) const {
    return eligibility_.TaskOf(job);
  }
  // Whether its user holds the job back.
  [[nodiscard]] bool IsHeld(JobId job) const { return eligibility_.IsHeld(job); }
  // By which users know jobs; those of the set-up.
  [[nodiscard]] const model::JobNumbers& numbers() const { return numbers_; }
  [[nodiscard]] std::int64_t decisions() const { return decisions_; }
  // Those of them, made by this engine, whose search a bound has ended (Proposal::bounded).
  [[nodiscard]] std::int64_t bounded_decisions() const { return bounded_decisions_; }
  [[nodiscard]] std::int64_t events() const { return events_; }
  [[nodiscard]] const SharedConfiguration& shared_configuration() const {
    return parts_->configuration;
  }
  // Reads a configuration that is to follow `present`. Errors: those of ConfigurationSource; the
  // engine has none.
  [[nodiscard]] Result<SharedConfiguration> ReadConfiguration(std::string_view note,
                                                              const Configuration& present) const;
  // The same of one that is asked for in words.
  [[nodiscard]] Result<SharedConfiguration> MakeConfiguration(const AskedConfiguration& asked,
                                                              const Configuration& present) const;
  [[nodiscard]] const Configuration& configuration() const { return *parts_->configuration; }
  [[nodiscard]] const model::Rules& rules() const { return configuration().rules; }
  [[nodiscard]] const Cluster& cluster() const { return configuration().cluster; }
  // How fast jobs run, as decisions see it: as stated, and corrected by what has been measured.
  [[nodiscard]] const ExecutionModel& stated_rates() const { return *configuration().rates; }
  [[nodiscard]] const ExecutionModel& rates() const { return parts_->rates; }
  [[nodiscard]] const profile::MeasuredModel* measured() const { return parts_->measured.get(); }
  [[nodiscard]] const Charges& charges() const { return parts_->charges; }
  // Whether the bundle in charge keeps a job away from the nodes that it avoids. One that chooses
  // for all jobs at once, or names GPUs itself, does not look.
  [[nodiscard]] bool keeps_away() const { return parts_->scheduler.keeps_away(); }
  // No decisions are made: facts are taken, and nothing starts or gives way (fact::Switched).
  [[nodiscard]] bool is_paused() const { return paused_; }

 private:
  class Change;      // to another configuration
  class NodeChange;  // a node comes or goes
  class Following;   // what was decided elsewhere
  class NoRequeue;   // jobs that no policy may preempt

  // Facts.
  void Take(const model::Event& event);
  void TakeSubmit(const model::Event& event);
  void TakeEnd(JobId id, TimePoint at);
  void TakeWork(const model::Event& event);
  void TakeResize(const model::Event& event);
  void TakeNode(const model::Event& event);
  void TakeCancel(JobId id, TimePoint at);
  void TakeHold(const model::Event& event);
  void TakeGpus(JobId job, bool loses_work);
  void Leave(JobId job, model::JobPhase phase, std::string reason = {});
  void TakeEligible();
  void Requeue(JobId job);
  void AdmitCpuJob(JobId job, TimePoint at);
  void CorrectJobs(const std::string& model);

  // Decisions.
  Status Decide(TimePoint now);
  void TellDecision() const;
  [[nodiscard]] Status Follow(const model::Batch& batch, bool is_due);
  void BringUpToDate(TimePoint now);
  void ApplyVerdicts(std::span<const Verdict> verdicts, TimePoint now);
  [[nodiscard]] Status Adopt(scheduler::Selection selection, TimePoint now);
  void Drop(JobId job, TimePoint now);
  void ScheduleEnds(TimePoint now);
  void Predict(JobId job, TimePoint now, bool charge_counts);
  model::Action& Act(model::ActionKind kind, JobId job);
  void AddRatesToActions();
  [[nodiscard]] Snapshot MakeSnapshot(TimePoint now) const;

  // Bundles.
  [[nodiscard]] Selector::Outlook OutlookOf(std::string_view now, std::size_t candidate,
                                            std::optional<Duration> horizon) const;
  [[nodiscard]] std::unique_ptr<Engine> ForkFrom(std::string_view state) const;
  void ChooseBundle(TimePoint now);
  void Use(const scheduler::Bundle& bundle);

  DecisionObserver* const observer_;
  const Selector* selector_;   // null: the bundle in charge stays
  std::size_t in_charge_ = 0;  // of the candidates
  bool paused_ = false;

  // What there is: jobs and nodes.
  model::JobRecords jobs_;
  NodesUp nodes_;
  TimePoint first_end_ = kEndOfTime;  // of the ends taken last; see PublishedRules::true_instants
  double first_end_early_ = 0;

  std::unique_ptr<Parts> parts_;  // what follows from the configuration
  const model::JobNumbers& numbers_;
  const ConfigurationSource* const configurations_;
  Eligibility eligibility_;

  // The step at hand.
  TimePoint now_{};
  std::int64_t decisions_ = 0;
  std::int64_t bounded_decisions_ = 0;
  std::int64_t events_ = 0;
  std::vector<JobId> resized_;  // since the last decision
  std::vector<model::Action> actions_;
};

}  // namespace trainyard::engine
