// SPDX-License-Identifier: Apache-2.0
// Who shall hold which GPUs: the components of a bundle, composed, with what they remember. The
// engine tells it what happened to jobs and nodes, asks it at each decision, and carries out what
// it says.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/placer.h"
#include "trainyard/component.h"

namespace trainyard {

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

  // What has happened since the last decision.
  void Arrive(JobId job, TimePoint now);  // admitted
  void Leave(JobId job);                  // ended, cancelled or held back
  void Return(JobId job, TimePoint now);  // is held back no longer
  void Change(JobId job, TimePoint now);  // its work or its demand is another now
  void LoseGpus(JobId job, TimePoint now);
  // The grant, which is still in the job's record, ends.
  void EndGrant(const Grant& grant) { placer_.Remove(grant); }
  void SetUp(NodeId node, bool up) { placer_.SetUp(node, up); }

  // A decision: the verdicts of the admission, then those of a policy that admits jobs itself, each
  // to be applied before the next call; then what is to be held from now on; and at the end, when
  // that has come true, Settle with the jobs whose grants differ.
  [[nodiscard]] std::vector<Verdict> Admit(const Snapshot& snapshot);
  [[nodiscard]] Result<std::vector<Verdict>> Propose(const Snapshot& snapshot);
  [[nodiscard]] Result<Selection> Select(const Snapshot& snapshot);
  void Settle(const Snapshot& snapshot, std::span<const JobId> changed);

  // When to decide again if nothing happens.
  [[nodiscard]] std::optional<TimePoint> wake_at() const {
    return queue_ ? queue_->wake_at() : proposal_.wake_at;
  }
  // The ends that the policy plans, of this decision.
  [[nodiscard]] std::span<const PlannedEnd> planned_ends() const { return proposal_.ends; }
  // Why demand classes wait, as of the last decision.
  [[nodiscard]] std::span<const Blocked> blocked() const { return blocked_; }
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
  [[nodiscard]] Result<Selection> Place(const Snapshot& snapshot);
  [[nodiscard]] Result<Selection> PlaceGroups(const Snapshot& snapshot);
  [[nodiscard]] Result<Selection> PlaceProposal();
  void PutStaysFirst(std::vector<Demand>& demands) const;

  const SchedulerContext context_;
  const JobRecords& jobs_;
  const bool counts_restarts_;
  Bundle bundle_;
  PolicyTraits traits_;
  ProposalCheck check_;
  Placer placer_;
  std::unique_ptr<OrderedQueue> queue_;  // with an ordering
  std::unique_ptr<Memory> policy_memory_;
  std::unique_ptr<Memory> admission_memory_;
  std::unique_ptr<Memory> grouping_memory_;
  Proposal proposal_;  // of the decision at hand
  std::vector<Blocked> blocked_;
};

}  // namespace trainyard
