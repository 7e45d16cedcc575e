// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "scheduler/queue/ordered_list.h"

namespace trainyard::scheduler {

// The oracle of the other queues: asks for every key and sorts all live jobs at each decision.
class PlainList final : public OrderedList {
 public:
  // Both must outlive the queue.
  PlainList(const Ordering& ordering, const JobTable& jobs, const QueueRules& rules)
      : OrderedList(ordering, jobs, rules) {}

 private:
  void Sort(std::vector<Ranked>& list, JobSet& stale, TimePoint now) override;
};

}  // namespace trainyard::scheduler
