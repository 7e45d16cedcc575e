// SPDX-License-Identifier: Apache-2.0
// Makes a policy of an ordering: keeps the live jobs in order and walks them over the packing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "scheduler/displacement.h"
#include "scheduler/order_index.h"
#include "scheduler/packing.h"
#include "scheduler/walk.h"
#include "trainyard/component.h"

namespace trainyard::scheduler {

// A time for each of some jobs, the earliest first.
class JobTimes {
 public:
  using InOrder = std::set<std::pair<TimePoint, JobId>>;

  // Replaces the time that the job has; none: it has none any more. O(log jobs).
  void Set(JobId job, std::optional<TimePoint> at) {
    Cancel(job);
    if (!at) {
      return;
    }
    if (at_.size() <= Index(job)) {
      at_.resize(std::max(at_.size() * 2, Index(job) + 1), kEndOfTime);
    }
    at_[Index(job)] = *at;
    in_order_.emplace(*at, job);
  }
  // Nothing happens where the job has no time. O(log jobs).
  void Cancel(JobId job) {
    if (Index(job) < at_.size() && at_[Index(job)] != kEndOfTime) {
      in_order_.erase({at_[Index(job)], job});
      at_[Index(job)] = kEndOfTime;
    }
  }
  // By time, then by JobId.
  [[nodiscard]] const InOrder& in_order() const { return in_order_; }
  [[nodiscard]] bool empty() const { return in_order_.empty(); }
  // The earliest is due by `now`.
  [[nodiscard]] bool IsDue(TimePoint now) const {
    return !in_order_.empty() && in_order_.begin()->first <= now;
  }

 private:
  InOrder in_order_;
  std::vector<TimePoint> at_;  // by JobId; kEndOfTime: none
};

// Some of the jobs. Insert, Erase and Holds are O(1), Insert amortised.
class JobSet {
 public:
  void Insert(JobId job) {
    if (!Holds(job)) {
      holds_.resize(std::max(holds_.size(), Index(job) + 1));
      holds_[Index(job)] = true;
      ++count_;
      inserted_.push_back(job);
      if (inserted_.size() > 2 * count_ + 64) {
        Compact();
      }
    }
  }
  void Erase(JobId job) {
    if (Holds(job)) {
      holds_[Index(job)] = false;
      --count_;
    }
  }
  [[nodiscard]] bool Holds(JobId job) const {
    return Index(job) < holds_.size() && holds_[Index(job)];
  }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  // Empties the set. By JobId. O(n log n), n: insertions since the last call.
  [[nodiscard]] std::vector<JobId> TakeAll();
  void Serialize(StateStream& state);  // as a std::set of jobs

 private:
  void Compact();  // `inserted_` as a sorted list of the jobs in the set

  std::vector<bool> holds_;  // by JobId
  std::size_t count_ = 0;
  std::vector<JobId> inserted_;  // may be erased by now, and there twice
};

// What has happened to a job since the last decision.
enum class JobChange : std::uint8_t {
  kAdmitted,
  kLeft,       // ended, cancelled or held back
  kReturned,   // is held back no longer
  kRequested,  // its work or the GPUs that it asks for are others now
  kLostGpus,   // its node failed, say; it waits again
};

class OrderedQueue {
 public:
  // How the order is kept: heaps that events change; a sorted list that each decision goes through
  // (plain), which Walk::former_rank always needs; or a list whose keys are all asked for at each
  // decision, the oracle of both.
  enum class Upkeep : std::uint8_t { kIncremental, kSortedList, kOracle };
  struct Settings {
    Walk walk{};
    Upkeep upkeep = Upkeep::kIncremental;
    bool running_first = false;  // of equal keys (Preemption::Rule::kSound)
  };
  // All must outlive the queue.
  OrderedQueue(const Ordering& ordering, const JobTable& jobs, const Packing& packing,
               const Settings& settings);

  void Note(JobId job, JobChange change, TimePoint now);
  // A job whose key has a component that is not a number, so that it has no place in the order: the
  // ordering breaks its contract. None has: nothing.
  [[nodiscard]] std::optional<JobId> job_without_key() const { return job_without_key_; }

  // Which jobs get what at `now`. Changes the packing to the result.
  [[nodiscard]] Selection Select(const Snapshot& snapshot, Packing& packing);
  struct Ranked {
    OrderIndex::Rank rank{};
    JobId job{};
    int gpus = 0;
    void Serialize(StateStream& state) { state(rank, job, gpus); }
  };
  // All live jobs in their order at `now`, for a placement that walks itself; valid until the next
  // call. REQUIRES: plain.
  [[nodiscard]] std::span<const Ranked> InOrder(const Snapshot& snapshot);
  [[nodiscard]] static std::vector<Demand> DemandsOf(std::span<const Ranked> list);
  // The selection has come true: `changed` are the jobs whose grants differ now. When to decide
  // again if nothing happens.
  [[nodiscard]] std::optional<TimePoint> Adopted(const Snapshot& snapshot,
                                                 std::span<const JobId> changed);

  // The live jobs without GPUs in their order at `now`, as views show them. O(live log live).
  [[nodiscard]] std::vector<JobId> Waiting(TimePoint now) const;
  // The order, and what the ordering remembers. Reading: into a new queue; jobs and packing are as
  // they were.
  void Serialize(StateStream& state);

  // Standing::stay of the job.
  [[nodiscard]] std::optional<Duration> StayOf(JobId job, TimePoint now) const {
    return ordering_.StandingOf(jobs_.at(job), now, memory_.get()).stay;
  }

 private:
  [[nodiscard]] OrderIndex::Rank RankOf(const JobView& view, const Standing& standing) const;
  [[nodiscard]] OrderIndex::Rank RankOf(const JobView& view, TimePoint now) const {
    return RankOf(view, ordering_.StandingOf(view, now, memory_.get()));
  }
  void NoteStay(const JobView& view, TimePoint now);
  void Insert(JobId job, TimePoint now, bool exactly = true);  // where it belongs now
  [[nodiscard]] bool IsInPlace(const JobView& view, const OrderIndex::Rank& rank, TimePoint now,
                               bool exactly);
  void InsertLater(JobId job, TimePoint now);
  void InsertPostponed(TimePoint now, bool exactly = true);
  void FollowUp(std::span<const JobId> changed, TimePoint now);
  void Withdraw(JobId job);
  void Reschedule(const JobView& view, TimePoint now);
  void Resume(const std::vector<bool>& stale);
  void TellDue(TimePoint now);
  void BringUpToDate(const Snapshot& snapshot);
  void Enlist(JobId job);
  void Delist(JobId job);
  [[nodiscard]] std::size_t RankList(TimePoint now);
  void SortList(TimePoint now);
  void Stale(JobId job) {
    stale_[Index(job)] = true;
    some_stale_ = true;
  }
  Selection SelectPlain(const Snapshot& snapshot, Packing& packing);
  Selection SelectIncremental(const Snapshot& snapshot, Packing& packing);
  [[nodiscard]] std::optional<JobId> BestOpen(std::span<const DemandClass> closed) const;
  void BlockBehind(const DemandClass& head, Selection& selection) const;
  std::optional<Grant> Place(JobId job, const Snapshot& snapshot, Packing& packing);
  void LoseTurn(JobId victim, TimePoint now);
  void TellSettled(std::span<const JobId> jobs, TimePoint now);
  [[nodiscard]] std::optional<TimePoint> NextWake(const Snapshot& snapshot) const;
  [[nodiscard]] std::optional<TimePoint> StayWake(const Snapshot& snapshot) const;
  [[nodiscard]] std::optional<OrderIndex::Rank> BestWaiting(const Snapshot& snapshot) const;
  [[nodiscard]] OrderIndex::Rank RankAfterStay(JobId job, TimePoint end, TimePoint now) const;

  const Ordering& ordering_;
  const OrderingTraits traits_;
  const Walk walk_;
  const JobTable& jobs_;
  const Packing& packing_;  // for the classes of demands
  const bool plain_;
  const bool oracle_;
  const bool running_first_;
  std::unique_ptr<Memory> memory_;
  mutable std::optional<JobId> job_without_key_;

  OrderIndex index_;
  Displacement displacement_;
  std::vector<Ranked> list_;     // plain: the order of last time
  std::vector<bool> stale_;      // plain, by JobId: the rank may be another now
  bool some_stale_ = false;      // plain: some job's
  JobTimes moves_;               // when keys move (Standing::moves_at)
  JobTimes stays_;               // the ends of the stays of running jobs
  std::vector<JobId> due_;       // told kDue in this instant
  std::vector<JobId> evicted_;   // lost their GPUs in this walk, perhaps to get others
  std::vector<JobId> reinsert_;  // to be inserted anew after this walk, grant changed or not
  // While no job waits, the order decides nothing: these running jobs are inserted, or their moves
  // scheduled, when one does. The second only where keys follow from views alone.
  const bool schedules_late_;
  JobSet postponed_inserts_;
  std::set<JobId> postponed_moves_;
  // Jobs within their stay whose key in the index is an earlier one: only a job that goes first
  // compares itself with them.
  JobSet inexact_;
  std::optional<EvictionIndex> evictions_;  // where running jobs with named GPUs can be displaced
  std::optional<TimePoint> wake_at_;        // as Adopted has last said; snapshots hold it
};

}  // namespace trainyard::scheduler
