// SPDX-License-Identifier: Apache-2.0
#include "scheduler/queue/plain_list.h"

#include <algorithm>

namespace trainyard::scheduler {

void PlainList::Sort(std::vector<Ranked>& list, JobSet& /*stale*/, TimePoint now) {
  for (Ranked& ranked : list) {
    const JobView view = standings_.jobs().at(ranked.job);
    ranked.rank = RankInList(view, now);
    ranked.gpus = view.spec->gpus;
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const Ranked& a, const Ranked& b) { return a.rank < b.rank; });
}

}  // namespace trainyard::scheduler
