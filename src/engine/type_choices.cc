// SPDX-License-Identifier: Apache-2.0
#include "engine/type_choices.h"

#include <functional>
#include <numeric>

namespace trainyard {

TypeChoices::TypeChoices(const Cluster& cluster, const ExecutionModel& rates)
    : types_(cluster), rates_(rates) {}

std::vector<GpuTypeSet> TypeChoices::PoolsOf(const JobSpec& job, int gpus) const {
  std::map<double, GpuTypeSet, std::greater<>> by_rate;
  ForEachType(types_.Accepted(job), [&](std::size_t type) {
    const double rate = rates_.RateOn(job, gpus, types_.types()[type]);
    if (rate > 0) {
      by_rate[rate] |= GpuTypeSet{1} << type;
    }
  });
  std::vector<GpuTypeSet> pools;
  pools.reserve(by_rate.size());
  for (const auto& [rate, pool] : by_rate) {
    pools.push_back(pool);
  }
  return pools;
}

DemandClass TypeChoices::ClassOf(const JobSpec& job, int gpus) {
  if (!several()) {
    return {.gpus = gpus};
  }
  return {.gpus = gpus, .kind = KindOf(PoolsOf(job, gpus))};
}

std::optional<DemandClass> TypeChoices::KnownClassOf(const JobSpec& job, int gpus) const {
  if (!several()) {
    return DemandClass{.gpus = gpus};
  }
  const auto known = kinds_.find(PoolsOf(job, gpus));
  return known == kinds_.end() ? std::nullopt
                               : std::optional(DemandClass{.gpus = gpus, .kind = known->second});
}

int TypeChoices::KindOf(std::vector<GpuTypeSet> pools) {
  const auto [known, is_new] = kinds_.try_emplace(pools, static_cast<int>(choices_.size()));
  if (is_new) {
    const GpuTypeSet all =
        std::accumulate(pools.begin(), pools.end(), GpuTypeSet{0}, std::bit_or<>());
    choices_.push_back(
        {.pools = std::move(pools), .all = all, .largest_node = types_.LargestNodeOf(all)});
  }
  return known->second;
}

void TypeChoices::Exchange(StateStream& state) {
  std::vector<std::vector<GpuTypeSet>> kinds;
  for (const Choice& choice : choices_) {
    kinds.push_back(choice.pools);
  }
  state(kinds);
  if (state.reading()) {
    for (std::vector<GpuTypeSet>& pools : kinds) {
      KindOf(std::move(pools));
    }
  }
}

std::string TypeChoices::Objection(const JobSpec& job, const Grant& grant) {
  const GpuTypeSet may = Of(ClassOf(job, grant.gpus).kind).all;
  for (const Slice& slice : grant.slices) {
    if (!types_.Has(may, slice.node)) {
      return "is given GPUs of type " + types_.NamesOf(GpuTypeSet{1} << types_.of(slice.node)) +
             "; it runs on " + (may == 0 ? "none of the cluster's types" : types_.NamesOf(may));
    }
  }
  return {};
}

}  // namespace trainyard
