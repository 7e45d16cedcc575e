// SPDX-License-Identifier: Apache-2.0
// Which jobs shall hold which GPUs: the components of a bundle, composed, with what they remember.
//
// A scheduler is a function with a memory. The engine notes what happens to jobs and nodes. At a
// decision it asks for the verdicts on arrivals (Admit), then, by a snapshot of what is true now,
// for what shall be held (Decide); it makes that true, and says so (Adopted). When to decide next
// follows only then, since it depends on what the changes have cost.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "scheduler/cpu_jobs.h"
#include "scheduler/placer.h"
#include "scheduler/queue/ordered_list.h"
#include "trainyard/component.h"

namespace trainyard::scheduler {

class Scheduler {
 public:
  // `counts_restarts`: running jobs are not displaced for less than that costs
  // (Preemption::kSound).
  Scheduler(const SchedulerContext& context, const Bundle& bundle, bool counts_restarts);

  // Another bundle, or the same one anew, takes over the jobs and grants that there are: Use, and
  // then either Join for all of them or, to go on as another scheduler with the same bundle would,
  // Serialize.
  void Use(const Bundle& bundle);
  void Join(TimePoint now);

  // Decisions are made elsewhere from now on, and this scheduler makes none any more: it
  // ignores what it is told. For replays of what another program has decided.
  void Retire();

  // What has happened since the last decision: to a job, to its grant, which ends and is still in
  // its record, to a node.
  void Note(JobId job, JobChange change, TimePoint now);
  void EndGrant(JobId job);
  void SetUp(NodeId node, bool up);
  // Nodes have come or gone with jobs that go on there.
  void Refill();

  // The verdicts of the admission.
  [[nodiscard]] Result<std::vector<Verdict>> Admit(const Snapshot& snapshot);
  // Which jobs hold what from now on. `judge` is given the verdicts of a policy that admits jobs
  // itself, and applies them before the jobs are placed.
  using Judge = std::function<void(std::span<const Verdict>)>;
  [[nodiscard]] Result<Selection> Decide(const Snapshot& snapshot, const Judge& judge);
  // The same where jobs without GPUs alone have given cause to decide: nothing is asked of the
  // policy, and what others hold stays as it is. Selections of Decide have it in them.
  [[nodiscard]] Selection DecideCpuJobs(TimePoint now);
  // That has come true: `changed` are the jobs whose grants differ now. When to decide again if
  // nothing happens.
  [[nodiscard]] std::optional<TimePoint> Adopted(const Snapshot& snapshot,
                                                 std::span<const JobId> changed);

  // The ends that the policy plans, of this decision.
  [[nodiscard]] std::span<const PlannedEnd> planned_ends() const { return proposal_.ends; }
  // Whether a bound has ended the policy's search, of this decision (Proposal::bounded).
  [[nodiscard]] bool bounded() const { return proposal_.bounded; }
  // Why demand classes wait, as of the last decision.
  [[nodiscard]] std::span<const model::Blocked> blocked() const { return blocked_; }
  // The jobs that wait, in the order in which they are served; empty: the policy keeps none.
  [[nodiscard]] std::vector<JobId> WaitingInOrder(TimePoint now) const {
    return queue_ && !retired_ ? queue_->standings().Waiting(now) : std::vector<JobId>();
  }
  // How long the job, which has just been given GPUs, trains before it may be a victim; `least`: by
  // the rules of the run.
  [[nodiscard]] Duration StayOf(JobId job, TimePoint now, Duration least) const;
  [[nodiscard]] const Bundle& bundle() const { return bundle_; }
  [[nodiscard]] const PolicyTraits& traits() const { return traits_; }
  [[nodiscard]] bool keeps_away() const { return placer_.keeps_away(); }
  [[nodiscard]] const ProposalCheck& check() const { return check_; }

  // What the components remember, and why jobs wait.
  void Serialize(StateStream& state);

 private:
  void OpenQueue();
  [[nodiscard]] Result<Selection> DecideByPolicy(const Snapshot& snapshot, const Judge& judge);
  [[nodiscard]] Result<Selection> DecideByOrder(const Snapshot& snapshot);
  [[nodiscard]] Result<Selection> DecideByGroups(const Snapshot& snapshot);
  [[nodiscard]] std::vector<JobId> CpuJobsInOrder(TimePoint now);
  [[nodiscard]] Key KeyOf(JobId cpu_job, TimePoint now);
  [[nodiscard]] std::span<const JobId> WithGpus(std::span<const JobId> jobs);
  void PutStaysFirst(std::vector<Demand>& demands, TimePoint now) const;

  const SchedulerContext context_;
  const model::JobRecords& jobs_;
  const bool counts_restarts_;
  Bundle bundle_;
  PolicyTraits traits_;
  ProposalCheck check_;
  Placer placer_;
  const CpuJobs cpu_jobs_;
  // Of jobs without GPUs, as an ordering is shown them: asking for one.
  std::map<JobId, std::pair<std::shared_ptr<const JobSpec>, JobSpec>> with_one_gpu_;
  std::unique_ptr<OrderedQueue> queue_;  // with an ordering
  OrderedList* list_ = nullptr;          // the queue, where it is a list
  std::unique_ptr<Memory> policy_memory_;
  std::unique_ptr<Memory> admission_memory_;
  std::unique_ptr<Memory> grouping_memory_;
  Proposal proposal_;  // of the decision at hand
  std::vector<model::Blocked> blocked_;
  std::vector<JobId> with_gpus_;  // of the decision at hand
  bool retired_ = false;
};

}  // namespace trainyard::scheduler
