// SPDX-License-Identifier: Apache-2.0
#include "policy/keyed_jobs.h"

#include <algorithm>
#include <tuple>

namespace trainyard {

std::vector<Demand> DemandsByKey(const Snapshot& snapshot,
                                 const std::function<double(const JobView&)>& key, Duration guard,
                                 KeyedJobs& memory) {
  memory.order.Meet(snapshot.jobs->live());
  struct Ranked {
    std::tuple<bool, double, TimePoint> key;
    Demand demand;
  };
  std::vector<Ranked> ranked;
  ranked.reserve(memory.order.jobs().size());
  for (const JobId job : memory.order.jobs()) {
    const JobView view = snapshot.jobs->at(job);
    if (memory.first.size() <= Index(job)) {
      memory.first.resize(std::max(memory.first.size() * 2, Index(job) + 1), false);
    }
    ranked.push_back({{!memory.first[Index(job)], key(view), view.spec->submit},
                      {.job = job, .gpus = view.spec->gpus}});
    if (guard > Duration{0} && view.waiting > guard) {
      memory.first[Index(job)] = true;
    }
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Ranked& a, const Ranked& b) { return a.key < b.key; });
  std::vector<Demand> demands;
  demands.reserve(ranked.size());
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    memory.order.jobs()[i] = ranked[i].demand.job;
    demands.push_back(std::move(ranked[i].demand));
  }
  return demands;
}

}  // namespace trainyard
