// SPDX-License-Identifier: Apache-2.0
// What an ordering says of the live jobs, with what it remembers, and the times at which its
// answers change: what all queues need, however they keep the order.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "scheduler/queue/job_set.h"
#include "scheduler/queue/order_index.h"
#include "trainyard/component.h"
#include "trainyard/state.h"

namespace trainyard::scheduler {

// What has happened to a job since the last decision.
enum class JobChange : std::uint8_t {
  kAdmitted,
  kLeft,       // ended, cancelled or held back
  kReturned,   // is held back no longer
  kRequested,  // its work or the GPUs that it asks for are others now
  kLostGpus,   // its node failed, say; it waits again
};

// How the jobs of an ordering are gone through.
struct QueueRules {
  Walk walk{};
  bool running_first = false;  // of equal keys (Preemption::Rule::kSound)
};

// A job in a list in its order.
struct Ranked {
  OrderIndex::Rank rank{};
  JobId job{};
  int gpus = 0;
  void Serialize(StateStream& state) { state(rank, job, gpus); }
};

class Standings {
 public:
  using Rank = OrderIndex::Rank;

  // Both must outlive it.
  Standings(const Ordering& ordering, const JobTable& jobs, const QueueRules& rules);

  [[nodiscard]] const JobTable& jobs() const { return jobs_; }
  [[nodiscard]] const Walk& walk() const { return rules_.walk; }
  // Whether keys change so; `when`: flags of KeyMoves.
  [[nodiscard]] bool Move(unsigned when) const { return (traits_.moves & when) != 0; }
  [[nodiscard]] bool moves_with_time() const { return traits_.moves_with_time; }

  [[nodiscard]] Standing Of(const JobView& view, TimePoint now) const {
    return ordering_.StandingOf(view, now, memory_.get());
  }
  [[nodiscard]] Rank RankOf(const JobView& view, const Standing& standing) const;
  [[nodiscard]] Rank RankOf(const JobView& view, TimePoint now) const {
    return RankOf(view, Of(view, now));
  }
  // Of a running job at the end of its stay, unless its key moves otherwise than by its slope.
  [[nodiscard]] Rank RankAfterStay(JobId job, TimePoint end, TimePoint now) const;
  // A job whose key has a component that is not a number, so that it has no place in the order: the
  // ordering breaks its contract. None has: nothing.
  [[nodiscard]] std::optional<JobId> job_without_key() const { return job_without_key_; }
  // The live jobs without GPUs in their order at `now`, as views show them. O(live log live).
  [[nodiscard]] std::vector<JobId> Waiting(TimePoint now) const;
  // Standing::stay of the job.
  [[nodiscard]] std::optional<Duration> StayOf(JobId job, TimePoint now) const {
    return Of(jobs_.at(job), now).stay;
  }

  // Tells the ordering.
  void Note(JobId job, JobChange change, TimePoint now);
  // The job keeps its place until its stay ends, as far as that follows from its present grant.
  void NoteStay(const JobView& view, TimePoint now);

  // The start of a decision. For each job whose key moves by now: tells the ordering, then calls
  // `moved` with the job.
  template <typename Moved>
  void TellDue(TimePoint now, const Moved& moved);
  // Calls `ended` with each job whose stay has ended by now: the job takes its place by its key.
  template <typename Ended>
  void EndStays(TimePoint now, const Ended& ended) {
    while (stays_.IsDue(now)) {
      ended(stays_.TakeFirst().second);
    }
  }
  void BeginDecision(const Snapshot& snapshot) { ordering_.BeginDecision(snapshot, memory_.get()); }

  // The end of a decision, which has come true: `changed` are the jobs whose grants differ now.
  // Where keys move on grants, calls `settled` with the view of each such job and of those that
  // were due, in the order of the walk, after the ordering has been told.
  template <typename Settled>
  void FollowUp(std::span<const JobId> changed, TimePoint now, const Settled& settled);
  // When to decide again if nothing happens; `stay_end`: because a stay ends.
  [[nodiscard]] std::optional<TimePoint> NextWake(const Snapshot& snapshot,
                                                  std::optional<TimePoint> stay_end);
  // Whether the end of a stay can be a reason to decide.
  [[nodiscard]] bool StaysMatter(const Snapshot& snapshot) const {
    return !stays_.empty() && snapshot.jobs_waiting > 0 && rules_.walk.preempt;
  }
  // The first end of a stay for which `usable(job, end)` holds.
  template <typename Usable>
  [[nodiscard]] std::optional<TimePoint> FirstStayEnd(const Usable& usable) const {
    for (const auto& [end, job] : stays_.in_order()) {
      if (usable(job, end)) {
        return end;
      }
    }
    return std::nullopt;
  }

  // What the ordering remembers and when keys move, with the order itself, of which a queue leaves
  // empty what it does not keep: `stale` goes with `list`. Reading: jobs are as they were then.
  void Serialize(StateStream& state, OrderIndex& index, std::vector<Ranked>& list,
                 std::vector<bool>& stale, JobSet& postponed_inserts);

 private:
  void Reschedule(const JobView& view, TimePoint now);
  [[nodiscard]] std::vector<JobId> TakeDue(TimePoint now);
  [[nodiscard]] std::vector<JobId> ChangedOrDue(std::span<const JobId> changed) const;
  [[nodiscard]] std::vector<JobView> ViewsOf(std::span<const JobId> jobs) const;
  [[nodiscard]] std::vector<std::pair<Rank, const JobView*>> InWalkOrder(
      std::span<const JobView> views, TimePoint now) const;

  const Ordering& ordering_;
  const OrderingTraits traits_;
  const JobTable& jobs_;
  const QueueRules rules_;
  std::unique_ptr<Memory> memory_;
  mutable std::optional<JobId> job_without_key_;

  JobTimes moves_;          // when keys move (Standing::moves_at)
  JobTimes stays_;          // the ends of the stays of running jobs
  std::vector<JobId> due_;  // told kDue in this instant
  // While no job waits, the order decides nothing: the moves of these running jobs are scheduled
  // when one does. Only where keys follow from views alone.
  const bool schedules_late_;
  std::set<JobId> postponed_moves_;
  std::optional<TimePoint> wake_at_;  // as NextWake has last said; snapshots hold it
};

template <typename Moved>
void Standings::TellDue(TimePoint now, const Moved& moved) {
  due_ = TakeDue(now);
  for (const JobId job : due_) {
    if (!schedules_late_) {
      ordering_.Notify(JobEvent::kDue, jobs_.at(job), now, memory_.get());
    }
    moved(job);
  }
}

template <typename Settled>
void Standings::FollowUp(std::span<const JobId> changed, TimePoint now, const Settled& settled) {
  if (!Move(kOnGrant | kAtKnownTimes)) {
    return;
  }
  const std::vector<JobId> touched = ChangedOrDue(changed);
  if (schedules_late_) {
    postponed_moves_.insert(touched.begin(), touched.end());
  } else if (Move(kOnGrant)) {
    const std::vector<JobView> views = ViewsOf(touched);
    for (const auto& [rank, view] : InWalkOrder(views, now)) {
      ordering_.Notify(JobEvent::kSettled, *view, now, memory_.get());
      settled(*view);
      Reschedule(*view, now);
    }
  } else {
    for (const JobId job : touched) {
      Reschedule(jobs_.at(job), now);
    }
  }
}

}  // namespace trainyard::scheduler
