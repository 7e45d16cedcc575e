// SPDX-License-Identifier: Apache-2.0
#include "scheduler/type_choices.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace trainyard::scheduler {
namespace {

bool AvoidsNothing(const JobSpec& job) { return !job.traits || job.traits->avoided.empty(); }

}  // namespace

TypeChoices::TypeChoices(const Cluster& cluster, const ExecutionModel& rates)
    : types_(cluster), rates_(rates) {
  for (const NodeSpec& node : cluster.nodes) {
    node_gpus_.push_back(node.gpus);
  }
  if (!several()) {
    NumberOf({{types_.all()}, {}});  // kind 0: anywhere
  }
}

TypeChoices::Kind TypeChoices::KindOf(const JobSpec& job, int gpus) const {
  return {several() ? PoolsOf(job, gpus) : std::vector<model::GpuTypeSet>{types_.all()},
          job.traits ? job.traits->avoided : std::vector<NodeId>()};
}

std::vector<model::GpuTypeSet> TypeChoices::PoolsOf(const JobSpec& job, int gpus) const {
  std::map<double, model::GpuTypeSet, std::greater<>> by_rate;
  model::ForEachType(types_.Accepted(job), [&](std::size_t type) {
    const double rate = rates_.RateOn(job, gpus, types_.types()[type]);
    if (rate > 0) {
      by_rate[rate] |= model::GpuTypeSet{1} << type;
    }
  });
  std::vector<model::GpuTypeSet> pools;
  pools.reserve(by_rate.size());
  for (const auto& [rate, pool] : by_rate) {
    pools.push_back(pool);
  }
  return pools;
}

DemandClass TypeChoices::ClassOf(const JobSpec& job, int gpus) {
  if (!several() && AvoidsNothing(job)) {
    return {.gpus = gpus};
  }
  return {.gpus = gpus, .kind = NumberOf(KindOf(job, gpus))};
}

std::optional<DemandClass> TypeChoices::KnownClassOf(const JobSpec& job, int gpus) const {
  const auto known = kinds_.find(KindOf(job, gpus));
  return known == kinds_.end() ? std::nullopt
                               : std::optional(DemandClass{.gpus = gpus, .kind = known->second});
}

int TypeChoices::NumberOf(Kind kind) {
  const auto [known, is_new] = kinds_.try_emplace(kind, static_cast<int>(choices_.size()));
  if (is_new) {
    Choice& choice = choices_.emplace_back();
    choice.pools = std::move(kind.first);
    choice.avoided = std::move(kind.second);
    choice.all = std::accumulate(choice.pools.begin(), choice.pools.end(), model::GpuTypeSet{0},
                                 std::bit_or<>());
    choice.largest_node = LargestNodeOf(choice);
  }
  return known->second;
}

int TypeChoices::LargestNodeOf(const Choice& choice) const {
  if (choice.avoided.empty()) {
    return types_.LargestNodeOf(choice.all);
  }
  int largest = 0;
  for (std::size_t i = 0; i < node_gpus_.size(); ++i) {
    if (types_.Has(choice.all, NodeAt(i)) &&
        !std::binary_search(choice.avoided.begin(), choice.avoided.end(), NodeAt(i))) {
      largest = std::max(largest, node_gpus_[i]);
    }
  }
  return largest;
}

void TypeChoices::Serialize(StateStream& state) {
  std::vector<Kind> kinds;
  for (const Choice& choice : choices_) {
    kinds.emplace_back(choice.pools, choice.avoided);
  }
  state(kinds);
  if (state.reading()) {
    for (Kind& kind : kinds) {
      NumberOf(std::move(kind));
    }
  }
}

std::string TypeChoices::Conflict(const JobSpec& job, const Grant& grant) {
  const model::GpuTypeSet may = Of(ClassOf(job, grant.gpus).kind).all;
  for (const Slice& slice : grant.slices) {
    if (!types_.Has(may, slice.node)) {
      return "is given GPUs of type " +
             types_.NamesOf(model::GpuTypeSet{1} << types_.of(slice.node)) + "; it runs on " +
             (may == 0 ? "none of the cluster's types" : types_.NamesOf(may));
    }
  }
  return {};
}

}  // namespace trainyard::scheduler
