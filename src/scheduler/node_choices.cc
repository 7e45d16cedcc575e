// SPDX-License-Identifier: Apache-2.0
#include "scheduler/node_choices.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace trainyard::scheduler {
namespace {

bool AvoidsNothing(const JobSpec& job) { return !job.traits || job.traits->avoided.empty(); }

}  // namespace

NodeChoices::NodeChoices(const Cluster& cluster, const ExecutionModel& rates)
    : classes_(cluster), rates_(rates) {
  for (const NodeSpec& node : cluster.nodes) {
    node_gpus_.push_back(node.gpus);
  }
  if (!several()) {
    NumberOf({{classes_.all()}, {}});  // kind 0: anywhere
  }
}

NodeChoices::Kind NodeChoices::KindOf(const JobSpec& job, int gpus) const {
  return {several() ? PoolsOf(job, gpus) : std::vector<model::NodeClassSet>{classes_.all()},
          job.traits ? job.traits->avoided : std::vector<NodeId>()};
}

std::vector<model::NodeClassSet> NodeChoices::PoolsOf(const JobSpec& job, int gpus) const {
  std::map<double, model::NodeClassSet, std::greater<>> by_rate;
  model::ForEachOf(classes_.Accepted(job), [&](std::size_t one) {
    const double rate = rates_.RateOn(job, gpus, classes_.TypeOf(one));
    if (rate > 0) {
      by_rate[rate] |= model::NodeClassSet{1} << one;
    }
  });
  std::vector<model::NodeClassSet> pools;
  pools.reserve(by_rate.size());
  for (const auto& [rate, pool] : by_rate) {
    pools.push_back(pool);
  }
  return pools;
}

DemandClass NodeChoices::ClassOf(const JobSpec& job, int gpus) {
  if (!several() && AvoidsNothing(job)) {
    return {.gpus = gpus};
  }
  return {.gpus = gpus, .kind = NumberOf(KindOf(job, gpus))};
}

std::optional<DemandClass> NodeChoices::KnownClassOf(const JobSpec& job, int gpus) const {
  const auto known = kinds_.find(KindOf(job, gpus));
  return known == kinds_.end() ? std::nullopt
                               : std::optional(DemandClass{.gpus = gpus, .kind = known->second});
}

int NodeChoices::NumberOf(Kind kind) {
  const auto [known, is_new] = kinds_.try_emplace(kind, static_cast<int>(choices_.size()));
  if (is_new) {
    Choice& choice = choices_.emplace_back();
    choice.pools = std::move(kind.first);
    choice.avoided = std::move(kind.second);
    choice.all = std::accumulate(choice.pools.begin(), choice.pools.end(), model::NodeClassSet{0},
                                 std::bit_or<>());
    choice.largest_node = LargestNodeOf(choice);
  }
  return known->second;
}

int NodeChoices::LargestNodeOf(const Choice& choice) const {
  if (choice.avoided.empty()) {
    return classes_.LargestNodeOf(choice.all);
  }
  int largest = 0;
  for (std::size_t i = 0; i < node_gpus_.size(); ++i) {
    if (classes_.Has(choice.all, NodeAt(i)) &&
        !std::binary_search(choice.avoided.begin(), choice.avoided.end(), NodeAt(i))) {
      largest = std::max(largest, node_gpus_[i]);
    }
  }
  return largest;
}

void NodeChoices::Serialize(StateStream& state) {
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

std::string NodeChoices::Conflict(const JobSpec& job, const Grant& grant) {
  if (!classes_.InPartition(job, grant.slices)) {
    return "is given nodes that are not in partition '" + job.queue + "'";
  }
  const model::NodeClassSet may = Of(ClassOf(job, grant.gpus).kind).all;
  for (const Slice& slice : grant.slices) {
    if (!classes_.Has(may, slice.node)) {
      return "is given GPUs of type " +
             classes_.NamesOf(model::NodeClassSet{1} << classes_.of(slice.node)) + "; it runs on " +
             (may == 0 ? "none of the cluster's types" : classes_.NamesOf(may));
    }
  }
  return {};
}

}  // namespace trainyard::scheduler
