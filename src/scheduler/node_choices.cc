// SPDX-License-Identifier: Apache-2.0
#include "scheduler/node_choices.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "model/job_fields.h"
#include "model/request/request_book.h"

namespace trainyard::scheduler {
namespace {

bool AvoidsNothing(const JobSpec& job) {
  return !job.traits || (job.traits->avoided.empty() && !job.traits->request);
}

}  // namespace

NodeChoices::NodeChoices(const Cluster& cluster, const ExecutionModel& rates)
    : cluster_(cluster), classes_(cluster), rates_(rates) {
  if (!several()) {
    NumberOf({.pools = {classes_.all()}});  // kind 0: anywhere
  }
}

NodeChoices::Kind NodeChoices::KindOf(const JobSpec& job, int gpus) const {
  Kind kind{.pools =
                several() ? PoolsOf(job, gpus) : std::vector<model::NodeClassSet>{classes_.all()}};
  if (job.traits) {
    kind.avoided = job.traits->avoided;
    kind.request = job.traits->request;
  }
  return kind;
}

std::vector<model::NodeClassSet> NodeChoices::PoolsOf(const JobSpec& job, int gpus) const {
  const model::TypesInOrder types =
      job.traits ? model::TypesOf(job.traits->gpu_types) : model::TypesInOrder();
  std::map<double, model::NodeClassSet, std::greater<>> by_rate;  // or by place in the order
  model::ForEachOf(classes_.Accepted(job), [&](std::size_t one) {
    const double rate = rates_.RateOn(job, gpus, classes_.TypeOf(one));
    if (rate <= 0) {
      return;
    }
    const auto place =
        std::find(types.names.begin(), types.names.end(), classes_.TypeOf(one).name) -
        types.names.begin();
    by_rate[types.ranked ? -static_cast<double>(place) : rate] |= model::NodeClassSet{1} << one;
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
    choice.pools = std::move(kind.pools);
    choice.avoided = std::move(kind.avoided);
    if (kind.request) {
      choice.request = *std::move(kind.request);
      Restrict(choice);
    }
    choice.all = std::accumulate(choice.pools.begin(), choice.pools.end(), model::NodeClassSet{0},
                                 std::bit_or<>());
    choice.largest_node = LargestNodeOf(choice);
  }
  return known->second;
}

// To the nodes that its request leaves.
void NodeChoices::Restrict(Choice& choice) const {
  auto rules = std::make_shared<model::SpreadRules>(model::RulesFor(cluster_, choice.request));
  for (std::size_t i = 0; i < rules->open.size(); ++i) {
    if (!rules->open[i]) {
      choice.avoided.push_back(NodeAt(i));
    }
  }
  std::sort(choice.avoided.begin(), choice.avoided.end());
  choice.avoided.erase(std::unique(choice.avoided.begin(), choice.avoided.end()),
                       choice.avoided.end());
  choice.rules = std::move(rules);
}

int NodeChoices::LargestNodeOf(const Choice& choice) const {
  if (choice.avoided.empty()) {
    return classes_.LargestNodeOf(choice.all);
  }
  int largest = 0;
  for (std::size_t i = 0; i < cluster_.nodes.size(); ++i) {
    if (classes_.Has(choice.all, NodeAt(i)) &&
        !std::binary_search(choice.avoided.begin(), choice.avoided.end(), NodeAt(i))) {
      largest = std::max(largest, cluster_.nodes[i].gpus);
    }
  }
  return largest;
}

int NodeChoices::LargestNodeFor(const DemandClass& of) {
  const Choice& choice = Of(of.kind);
  if (choice.rules == nullptr || choice.rules->nodes.least > 1) {
    return choice.rules == nullptr ? choice.largest_node : 0;
  }
  const auto [known, is_new] = largest_.try_emplace(of, 0);
  if (is_new) {
    const model::RequestBook empty(cluster_);
    for (std::size_t i = 0; i < cluster_.nodes.size(); ++i) {
      if (classes_.Has(choice.all, NodeAt(i)) && choice.rules->open[i]) {
        known->second = std::max(known->second, empty.MostGpus(choice.request, of.gpus, NodeAt(i),
                                                               cluster_.nodes[i].gpus));
      }
    }
  }
  return known->second;
}

void NodeChoices::Serialize(StateStream& state) {
  std::vector<const Kind*> known(kinds_.size());
  for (const auto& [kind, number] : kinds_) {
    known[static_cast<std::size_t>(number)] = &kind;
  }
  std::vector<std::pair<std::vector<model::NodeClassSet>, std::vector<NodeId>>> nodes;
  std::vector<std::optional<NodeRequest>> requests;
  for (const Kind* kind : known) {
    nodes.emplace_back(kind->pools, kind->avoided);
    requests.push_back(kind->request);
  }
  state(nodes);
  if (state.job_fields() >= model::kFirstRequestPlace) {
    state(requests);
  }
  if (!state.reading()) {
    return;
  }
  requests.resize(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    NumberOf({.pools = std::move(nodes[i].first),
              .avoided = std::move(nodes[i].second),
              .request = std::move(requests[i])});
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
