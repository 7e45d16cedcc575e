// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "scheduler/queue/ordered_list.h"

namespace trainyard::scheduler {

// A list whose keys are asked for only where they may have moved, and which is mostly in the order
// of last time. A decision costs O(live jobs). For whoever needs all jobs in their order: packers,
// groupings, walks that place everything anew or keep former ranks.
class SortedList final : public OrderedList {
 public:
  // Both must outlive the queue.
  SortedList(const Ordering& ordering, const JobTable& jobs, const QueueRules& rules)
      : OrderedList(ordering, jobs, rules) {}

 private:
  void Sort(std::vector<Ranked>& list, JobSet& stale, TimePoint now) override;
  [[nodiscard]] std::size_t RankAll(std::vector<Ranked>& list, JobSet& stale, TimePoint now) const;
};

}  // namespace trainyard::scheduler
