// SPDX-License-Identifier: Apache-2.0
#include "scheduler/queue/sorted_list.h"

#include <algorithm>

namespace trainyard::scheduler {

// Where time alone does not move a key, it is not asked for again. Returns the position up to which
// all have the ranks of last time.
std::size_t SortedList::RankAll(std::vector<Ranked>& list, JobSet& stale, TimePoint now) const {
  const Standings& all = standings_;
  const bool always = all.Move(kAlways);
  const bool while_served = all.Move(kWhileServed);
  std::size_t same = list.size();
  if (!always && !while_served && stale.empty()) {
    return same;
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    Ranked& ranked = list[i];
    const bool moves = always || (while_served && all.jobs().grant(ranked.job).gpus > 0);
    if (!moves && !stale.Holds(ranked.job)) {
      continue;
    }
    const JobView view = all.jobs().at(ranked.job);
    const OrderIndex::Rank rank = RankInList(view, now);
    if (ranked.gpus == 0 || rank != ranked.rank) {  // new, or moved
      same = std::min(same, i);
    }
    ranked.rank = rank;
    ranked.gpus = view.spec->gpus;
    if (!moves) {
      stale.Erase(ranked.job);
    }
  }
  return same;
}

void SortedList::Sort(std::vector<Ranked>& list, JobSet& stale, TimePoint now) {
  const std::size_t same = RankAll(list, stale, now);
  const auto sooner = [](const Ranked& a, const Ranked& b) { return a.rank < b.rank; };
  const auto changed = std::is_sorted_until(
      list.begin() + static_cast<std::ptrdiff_t>(same > 0 ? same - 1 : 0), list.end(), sooner);
  if (changed != list.end()) {
    std::stable_sort(changed, list.end(), sooner);
    std::inplace_merge(list.begin(), changed, list.end(), sooner);
  }
}

}  // namespace trainyard::scheduler
