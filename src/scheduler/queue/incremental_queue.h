// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "scheduler/queue/displacement.h"
#include "scheduler/queue/job_set.h"
#include "scheduler/queue/order_index.h"
#include "scheduler/queue/ordered_queue.h"

namespace trainyard::scheduler {

// Waiting jobs in heaps by demand class, running jobs in sorted sets (OrderIndex), changed by
// events alone: a decision costs O(classes + placed), however many jobs wait.
class IncrementalQueue final : public OrderedQueue {
 public:
  // All must outlive the queue. REQUIRES: the walk keeps no former ranks.
  IncrementalQueue(const Ordering& ordering, const JobTable& jobs, const Packing& packing,
                   const QueueRules& rules);

  void Note(JobId job, JobChange change, TimePoint now) override;
  void NoteFreed(const Grant& grant) override;
  [[nodiscard]] Selection Select(const Snapshot& snapshot, Packing& packing) override;
  [[nodiscard]] std::optional<TimePoint> Adopted(const Snapshot& snapshot,
                                                 std::span<const JobId> changed) override;
  void Serialize(StateStream& state) override;

 private:
  void Insert(JobId job, TimePoint now, bool exactly = true);  // where it belongs now
  [[nodiscard]] bool IsInPlace(const JobView& view, const OrderIndex::Rank& rank, TimePoint now,
                               bool exactly);
  void InsertLater(JobId job, TimePoint now);
  void InsertPostponed(TimePoint now, bool exactly = true);
  void Withdraw(JobId job);
  [[nodiscard]] Selection PlaceWaiting(const Snapshot& snapshot, Packing& packing);
  [[nodiscard]] std::optional<JobId> BestOpen(std::span<const DemandClass> closed,
                                              model::NodeClassSet awaited) const;
  void BlockBehind(std::span<const DemandClass> tried, model::NodeClassSet awaited,
                   Selection& selection) const;
  [[nodiscard]] std::optional<Grant> Place(JobId job, const Snapshot& snapshot,
                                           model::NodeClassSet but, Packing& packing);
  void LoseTurn(JobId victim, TimePoint now);
  [[nodiscard]] std::optional<TimePoint> StayEnd(const Snapshot& snapshot) const;
  [[nodiscard]] OrderIndex::Rank RankAfterStay(JobId job, TimePoint end, TimePoint now) const;

  const JobTable& jobs_;
  const Packing& packing_;  // for the classes of demands
  OrderIndex index_;
  Displacement displacement_;
  std::vector<JobId> evicted_;   // lost their GPUs in this walk, perhaps to get others
  std::vector<JobId> reinsert_;  // to be inserted anew after this walk, grant changed or not
  // While no job waits, the order decides nothing: these running jobs are inserted when one does.
  JobSet postponed_inserts_;
  // Jobs within their stay whose key in the index is an earlier one: only a job that goes first
  // compares itself with them.
  JobSet inexact_;
  std::optional<EvictionIndex> evictions_;  // where running jobs with named GPUs can be displaced
};

}  // namespace trainyard::scheduler
