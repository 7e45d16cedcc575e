// SPDX-License-Identifier: Apache-2.0
// Makes a policy of an ordering: keeps the live jobs in order and walks them over the packing.
// There are three kinds, which decide alike: `IncrementalQueue`, whose heaps change with events;
// `SortedList`, gone through at each decision; `PlainList`, the oracle of both.
#pragma once

#include <optional>
#include <span>

#include "scheduler/packing.h"
#include "scheduler/queue/standings.h"
#include "scheduler/walk.h"
#include "trainyard/component.h"

namespace trainyard::scheduler {

class OrderedQueue {
 public:
  virtual ~OrderedQueue() = default;
  OrderedQueue(const OrderedQueue&) = delete;
  OrderedQueue& operator=(const OrderedQueue&) = delete;

  virtual void Note(JobId job, JobChange change, TimePoint now) = 0;
  // GPUs are free of a job that was not in the queue.
  virtual void NoteFreed(const Grant& /*grant*/) {}
  // Which jobs get what at `now`. Changes the packing to the result.
  [[nodiscard]] virtual Selection Select(const Snapshot& snapshot, Packing& packing) = 0;
  // The selection has come true: `changed` are the jobs whose grants differ now. When to decide
  // again if nothing happens.
  [[nodiscard]] virtual std::optional<TimePoint> Adopted(const Snapshot& snapshot,
                                                         std::span<const JobId> changed) = 0;
  // The order, and what the ordering remembers. Reading: into a new queue; jobs and packing are as
  // they were.
  virtual void Serialize(StateStream& state) = 0;

  [[nodiscard]] const Standings& standings() const { return standings_; }

 protected:
  // Both must outlive the queue.
  OrderedQueue(const Ordering& ordering, const JobTable& jobs, const QueueRules& rules)
      : standings_(ordering, jobs, rules) {}

  Standings standings_;
};

}  // namespace trainyard::scheduler
