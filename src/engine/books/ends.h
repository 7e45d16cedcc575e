// SPDX-License-Identifier: Apache-2.0
// When jobs will end, as predicted: the ends to come, the earliest first.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>

#include "base/indexed_heap.h"
#include "model/job_record.h"
#include "model/rules.h"

namespace trainyard::engine {

// Holds ids only: each method is given the records, whose `forecast.logged` is the end. Where the
// forecast of a job whose end is scheduled has changed, Schedule or Cancel come next.
class Ends {
 public:
  // `published` must outlive it.
  explicit Ends(const model::PublishedRules& published) : published_(published) {}

  using Records = std::span<const model::JobRecord>;  // by JobId

  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] std::size_t size() const { return heap_.size(); }
  // The indices of the jobs, in no particular order.
  [[nodiscard]] std::span<const std::uint32_t> members() const { return heap_.members(); }
  // The job that ends first; the lower id of two. REQUIRES: there is one.
  [[nodiscard]] JobId first() const { return JobAt(heap_.top()); }
  [[nodiscard]] std::set<JobId> jobs() const;

  // The end of the job is that of its forecast now; `before`: what it was, if it was scheduled.
  // O(log ends).
  void Schedule(Records records, JobId job, TimePoint before);
  // Nothing happens where none is scheduled. O(log ends).
  void Cancel(Records records, JobId job);

  // The job with whose end other ends that lie close to the earliest one come
  // (PublishedRules::join_*), and until when these lie. REQUIRES: there is an end. O(ends) where
  // ends join by priority.
  [[nodiscard]] JobId FirstToJoin(Records records) const;
  [[nodiscard]] TimePoint JoinedUntil(TimePoint first) const;
  // Whether an end of that time is one of `now`, at which those before JoinedUntil come.
  [[nodiscard]] bool Joins(TimePoint logged, TimePoint now) const;

 private:
  [[nodiscard]] bool IsScheduled(JobId job) const;

  const model::PublishedRules& published_;
  base::IndexedHeap heap_;
  base::HeapPositions positions_;
};

}  // namespace trainyard::engine
