// SPDX-License-Identifier: Apache-2.0
// Queues that keep all live jobs in one list, which each decision goes through.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "scheduler/queue/job_set.h"
#include "scheduler/queue/ordered_queue.h"

namespace trainyard::scheduler {

class OrderedList : public OrderedQueue {
 public:
  void Note(JobId job, JobChange change, TimePoint now) final;
  [[nodiscard]] Selection Select(const Snapshot& snapshot, Packing& packing) final;
  // All live jobs in their order at `now`, for a placement that walks itself; valid until the next
  // call.
  [[nodiscard]] std::span<const Ranked> InOrder(const Snapshot& snapshot);
  [[nodiscard]] std::optional<TimePoint> Adopted(const Snapshot& snapshot,
                                                 std::span<const JobId> changed) final;
  void Serialize(StateStream& state) final;

 protected:
  using OrderedQueue::OrderedQueue;

  [[nodiscard]] OrderIndex::Rank RankInList(const JobView& view, TimePoint now) const;

 private:
  // Puts `list`, in the order of last time with new jobs behind, in its order at `now`, with ranks
  // and requested GPUs. `stale`: jobs whose ranks may be others than last time, to be erased when
  // they have been looked at, but not where ranks change without an event.
  virtual void Sort(std::vector<Ranked>& list, JobSet& stale, TimePoint now) = 0;

  void Enlist(JobId job);
  void Delist(JobId job);
  [[nodiscard]] std::optional<TimePoint> StayEnd(const Snapshot& snapshot) const;

  std::vector<Ranked> list_;
  JobSet stale_;
};

[[nodiscard]] std::vector<Demand> DemandsOf(std::span<const Ranked> list);

}  // namespace trainyard::scheduler
