// SPDX-License-Identifier: Apache-2.0
#include "trainyard/free_gpus.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "model/resource_amounts.h"
#include "model/slices.h"

namespace trainyard {
namespace {

std::uint64_t Bit(std::size_t position) { return std::uint64_t{1} << (position % 64); }

// The first set bit at or after `from`, or words.size() * 64.
std::size_t NextBit(const std::vector<std::uint64_t>& words, std::size_t from) {
  std::size_t word = from / 64;
  if (word >= words.size()) {
    return words.size() * 64;
  }
  std::uint64_t rest = words[word] & (~std::uint64_t{0} << (from % 64));
  while (rest == 0) {
    if (++word == words.size()) {
      return words.size() * 64;
    }
    rest = words[word];
  }
  return word * 64 + static_cast<std::size_t>(std::countr_zero(rest));
}

// Often it is one; std::popcount is a call where not every processor has an instruction for it.
int CountOf(std::uint64_t gpus) {
  return gpus != 0 && (gpus & (gpus - 1)) == 0 ? 1 : std::popcount(gpus);
}

int LargestNode(const Cluster& cluster, const std::vector<bool>& nodes) {
  int most = 0;
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
    most = nodes.empty() || nodes[i] ? std::max(most, cluster.nodes[i].gpus) : most;
  }
  return most;
}

}  // namespace

NodeSet::NodeSet(std::size_t nodes)
    : words_((nodes + 63) / 64), summary_((words_.size() + 63) / 64) {}

void NodeSet::Insert(NodeId node) {
  std::uint64_t& word = words_[Index(node) / 64];
  CHECK((word & Bit(Index(node))) == 0);
  word |= Bit(Index(node));
  summary_[Index(node) / 4096] |= Bit(Index(node) / 64);
  ++size_;
}

void NodeSet::Erase(NodeId node) {
  std::uint64_t& word = words_[Index(node) / 64];
  CHECK((word & Bit(Index(node))) != 0);
  word &= ~Bit(Index(node));
  if (word == 0) {
    summary_[Index(node) / 4096] &= ~Bit(Index(node) / 64);
  }
  --size_;
}

std::optional<NodeId> NodeSet::First(NodeId from) const {
  const std::size_t word = Index(from) / 64;
  if (word >= words_.size()) {
    return std::nullopt;
  }
  const std::uint64_t here = words_[word] & (~std::uint64_t{0} << (Index(from) % 64));
  if (here != 0) {
    return NodeAt(word * 64 + static_cast<std::size_t>(std::countr_zero(here)));
  }
  const std::size_t next = NextBit(summary_, word + 1);
  if (next >= words_.size()) {
    return std::nullopt;
  }
  return NodeAt(next * 64 + static_cast<std::size_t>(std::countr_zero(words_[next])));
}

FreeGpus::FreeGpus(const Cluster& cluster, const DataLocality* data)
    : FreeGpus(cluster, data, {}) {}

FreeGpus::FreeGpus(const Cluster& cluster, const DataLocality* data, std::vector<bool> nodes)
    : cluster_(&cluster),
      data_(data),
      free_(cluster.nodes.size()),
      soft_(cluster.nodes.size()),
      up_(cluster.nodes.size(), false),
      part_(std::move(nodes)),
      count_(cluster.nodes.size(), 0),
      by_count_(static_cast<std::size_t>(LargestNode(cluster, part_)) + 1,
                NodeSet(cluster.nodes.size())) {
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
    SetUp(NodeAt(i), true);
  }
}

void FreeGpus::Enlist(NodeId node, int count) {
  by_count_[static_cast<std::size_t>(count)].Insert(node);
  count_[Index(node)] = static_cast<std::uint8_t>(count);
  if (count > 0) {
    counts_ |= Bit(static_cast<std::size_t>(count - 1));
  }
}

void FreeGpus::Delist(NodeId node, int count) {
  NodeSet& nodes = by_count_[static_cast<std::size_t>(count)];
  nodes.Erase(node);
  count_[Index(node)] = 0;
  if (count > 0 && nodes.empty()) {
    counts_ &= ~Bit(static_cast<std::size_t>(count - 1));
  }
}

void FreeGpus::Move(NodeId node, std::uint64_t now_free, int now_count) {
  const int before = count(node);
  free_[Index(node)] = now_free;
  Delist(node, before);
  Enlist(node, now_count);
  total_ += now_count - before;
}

std::uint64_t FreeGpus::Lowest(NodeId node, int count) const {
  return model::LowestGpus(gpus(node), count);
}

void FreeGpus::Take(const Slices& slices) {
  for (const Slice& slice : slices) {
    if (!IsPart(slice.node)) {
      continue;
    }
    const std::uint64_t free = free_[Index(slice.node)];
    CHECK(up(slice.node) && (free & slice.gpus) == slice.gpus);
    Move(slice.node, free & ~slice.gpus, count(slice.node) - CountOf(slice.gpus));
    soft_[Index(slice.node)] -= slice.soft;
  }
}

void FreeGpus::Return(const Slices& slices) {
  for (const Slice& slice : slices) {
    if (!IsPart(slice.node)) {
      continue;
    }
    const std::uint64_t free = free_[Index(slice.node)];
    CHECK(up(slice.node) && (free & slice.gpus) == 0);
    Move(slice.node, free | slice.gpus, count(slice.node) + CountOf(slice.gpus));
    soft_[Index(slice.node)] += slice.soft;
  }
}

bool FreeGpus::AreFree(const Slices& slices) const {
  for (const Slice& slice : slices) {
    if (!up(slice.node) || (gpus(slice.node) & slice.gpus) != slice.gpus || !HasRoomFor(slice)) {
      return false;
    }
  }
  return true;
}

bool FreeGpus::HasRoomFor(const Slice& slice) const {
  return model::HasRoom(cluster_->nodes[Index(slice.node)], resources(slice.node), slice.soft);
}

void FreeGpus::SetUp(NodeId node, bool up) {
  const NodeSpec& spec = cluster_->nodes[Index(node)];
  if (up_[Index(node)] == up || !IsPart(node)) {
    return;
  }
  up_[Index(node)] = up;
  if (up) {
    free_[Index(node)] = model::AllGpus(spec.gpus);
    soft_[Index(node)] = spec.capacity;
    Enlist(node, spec.gpus);
    total_ += spec.gpus;
  } else {
    CHECK(free_[Index(node)] == model::AllGpus(spec.gpus));
    Delist(node, spec.gpus);
    free_[Index(node)] = 0;
    total_ -= spec.gpus;
  }
}

}  // namespace trainyard
