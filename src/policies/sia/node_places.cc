// SPDX-License-Identifier: Apache-2.0
#include "policies/sia/node_places.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "model/slices.h"

namespace trainyard::policies {
namespace {

bool TakesWhole(const Configuration& configuration, const NodeKind& kind) {
  return configuration.gpus >= kind.node_gpus || configuration.nodes > 1;
}

}  // namespace

NodePlaces::NodePlaces(std::size_t nodes, std::span<const NodeKind> kinds,
                       std::span<const ConfiguredJob> jobs)
    : kinds_(kinds), jobs_(jobs), nodes_(nodes), slices_(jobs.size()), whole_(jobs.size()) {
  for (const NodeKind& kind : kinds) {
    for (const NodeId node : kind.nodes) {
      nodes_[Index(node)].gpus = kind.node_gpus;
      nodes_[Index(node)].free = model::AllGpus(kind.node_gpus);
    }
  }
  std::vector<std::size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return jobs[a].configuration.gpus > jobs[b].configuration.gpus;
  });
  for (const std::size_t job : order) {
    const Configuration& configuration = jobs[job].configuration;
    whole_[job] = TakesWhole(configuration, kinds[configuration.kind]);
    if (!jobs[job].held.empty()) {
      Keep(job);
    }
  }
  for (const std::size_t job : order) {
    if (whole_[job] && slices_[job].empty()) {
      PlaceWhole(job, jobs[job].configuration, true);
    }
  }
  waiting_.clear();  // of those that have left for whole nodes: they are among these
  for (const std::size_t job : order) {
    if (!whole_[job] && slices_[job].empty()) {
      waiting_.push_back(job);
    }
  }
  // A job only makes smaller ones leave, so that this ends.
  while (!waiting_.empty()) {
    const auto largest =
        std::max_element(waiting_.begin(), waiting_.end(), [&](std::size_t a, std::size_t b) {
          return jobs[a].configuration.gpus < jobs[b].configuration.gpus;
        });
    const std::size_t job = *largest;
    waiting_.erase(largest);
    PlacePart(job, jobs[job].configuration, true);
  }
}

void NodePlaces::Keep(std::size_t job) {
  slices_[job] = jobs_[job].held;
  for (const Slice& slice : slices_[job]) {
    Node& node = nodes_[Index(slice.node)];
    node.free &= ~slice.gpus;
    if (whole_[job]) {
      node.whole = true;
    } else {
      node.parts.push_back(job);
    }
  }
}

void NodePlaces::Evict(std::size_t job) {
  for (const Slice& slice : slices_[job]) {
    Node& node = nodes_[Index(slice.node)];
    node.free |= slice.gpus;
    std::erase(node.parts, job);
  }
  slices_[job].clear();
  waiting_.push_back(job);
}

bool NodePlaces::PlaceWhole(std::size_t job, const Configuration& configuration, bool may_evict) {
  const NodeKind& kind = kinds_[configuration.kind];
  std::vector<NodeId> taken;
  for (const NodeId node : kind.nodes) {
    if (!nodes_[Index(node)].whole) {
      taken.push_back(node);
    }
  }
  const auto wanted = static_cast<std::size_t>(configuration.nodes);
  // Empty nodes, and then those with the most free GPUs.
  std::stable_sort(taken.begin(), taken.end(), [this](NodeId a, NodeId b) {
    return std::popcount(nodes_[Index(a)].free) > std::popcount(nodes_[Index(b)].free);
  });
  if (taken.size() < wanted ||
      (!may_evict && wanted > 0 && !nodes_[Index(taken[wanted - 1])].parts.empty())) {
    return false;
  }
  taken.resize(wanted);
  std::sort(taken.begin(), taken.end());
  int left = configuration.gpus;
  for (const NodeId id : taken) {
    Node& node = nodes_[Index(id)];
    for (const std::vector<std::size_t> parts = node.parts; const std::size_t part : parts) {
      Evict(part);
    }
    const std::uint64_t gpus = model::LowestGpus(node.free, std::min(left, node.gpus));
    left -= std::popcount(gpus);
    node.free &= ~gpus;
    node.whole = true;
    slices_[job].push_back({.node = id, .gpus = gpus});
  }
  return true;
}

NodePlaces::Node* NodePlaces::NodeToClear(const NodeKind& kind, int gpus) {
  Node* best = nullptr;
  for (const NodeId id : kind.nodes) {
    Node& node = nodes_[Index(id)];
    int smaller = 0;
    for (const std::size_t part : node.parts) {
      const int of_part = jobs_[part].configuration.gpus;
      smaller += of_part < gpus ? of_part : 0;
    }
    const int free = std::popcount(node.free);
    if (!node.whole && free + smaller >= gpus &&
        (best == nullptr || free > std::popcount(best->free))) {
      best = &node;
    }
  }
  return best;
}

bool NodePlaces::PlacePart(std::size_t job, const Configuration& configuration, bool may_evict) {
  const NodeKind& kind = kinds_[configuration.kind];
  const int gpus = configuration.gpus;
  Node* best = nullptr;  // the fullest that has room
  for (const NodeId id : kind.nodes) {
    Node& node = nodes_[Index(id)];
    const int free = std::popcount(node.free);
    if (!node.whole && free >= gpus && (best == nullptr || free < std::popcount(best->free))) {
      best = &node;
    }
  }
  if (best == nullptr && may_evict) {
    best = NodeToClear(kind, gpus);
  }
  if (best == nullptr) {
    return false;
  }
  while (std::popcount(best->free) < gpus) {
    const std::size_t smallest = *std::min_element(
        best->parts.begin(), best->parts.end(), [this](std::size_t a, std::size_t b) {
          return jobs_[a].configuration.gpus < jobs_[b].configuration.gpus;
        });
    Evict(smallest);
  }
  TakePart(job, NodeAt(static_cast<std::size_t>(best - nodes_.data())), gpus);
  return true;
}

void NodePlaces::TakePart(std::size_t job, NodeId id, int gpus) {
  Node& node = nodes_[Index(id)];
  const std::uint64_t taken = model::LowestGpus(node.free, gpus);
  node.free &= ~taken;
  node.parts.push_back(job);
  slices_[job] = {{.node = id, .gpus = taken}};
}

bool NodePlaces::PlaceAs(std::size_t job, const Configuration& configuration) {
  whole_[job] = TakesWhole(configuration, kinds_[configuration.kind]);
  return whole_[job] ? PlaceWhole(job, configuration, false) : PlacePart(job, configuration, false);
}

}  // namespace trainyard::policies
