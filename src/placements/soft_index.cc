// SPDX-License-Identifier: Apache-2.0
#include "placements/soft_index.h"

#include <bit>
#include <limits>

#include "model/resource_amounts.h"

namespace trainyard::placements {
namespace {

// Of a node that does not come into question: less than any demand.
constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min();
constexpr Resources kNothing{.milli_cpus = kNone, .memory_mib = kNone, .storage_kbps = kNone};
// Of a resource that a node does not state; sums and products of it stay in range.
constexpr std::int64_t kNoLimit = std::int64_t{1} << 38;

}  // namespace

SoftIndex::SoftIndex(const FreeGpus& free, bool by_count) : free_(free) {
  const std::size_t nodes = free.cluster().nodes.size();
  leaves_ = std::bit_ceil(nodes);
  const std::size_t trees = by_count ? static_cast<std::size_t>(free.largest_node()) + 1 : 1;
  trees_.assign(trees, Tree(2 * leaves_, kNothing));
  count_.assign(nodes, 0);
  for (std::size_t i = 0; i < nodes; ++i) {
    const int count = free.count(NodeAt(i));
    count_[i] = static_cast<std::uint8_t>(count);
    if (count > 0) {
      trees_.front()[leaves_ + i] = Left(NodeAt(i));
      if (by_count) {
        trees_[static_cast<std::size_t>(count)][leaves_ + i] = Left(NodeAt(i));
      }
    }
  }
  for (Tree& tree : trees_) {
    Build(tree);
  }
}

void SoftIndex::Build(Tree& tree) const {
  for (std::size_t i = leaves_ - 1; i > 0; --i) {
    tree[i] = model::Most(tree[2 * i], tree[2 * i + 1]);
  }
}

Resources SoftIndex::Left(NodeId node) const {
  const Resources& capacity = free_.cluster().nodes[Index(node)].capacity;
  const Resources& left = free_.resources(node);
  return {.milli_cpus = capacity.milli_cpus == 0 ? kNoLimit : left.milli_cpus,
          .memory_mib = capacity.memory_mib == 0 ? kNoLimit : left.memory_mib,
          .storage_kbps = capacity.storage_kbps == 0 ? kNoLimit : left.storage_kbps};
}

void SoftIndex::Update(NodeId node) {
  const int count = free_.count(node);
  const Resources left = count > 0 ? Left(node) : kNothing;
  Set(trees_.front(), node, left);
  if (trees_.size() > 1) {
    const std::uint8_t before = count_[Index(node)];
    if (before != count && before > 0) {
      Set(trees_[before], node, kNothing);
    }
    if (count > 0) {
      Set(trees_[static_cast<std::size_t>(count)], node, left);
    }
  }
  count_[Index(node)] = static_cast<std::uint8_t>(count);
}

void SoftIndex::Set(Tree& tree, NodeId node, const Resources& left) const {
  std::size_t at = leaves_ + Index(node);
  tree[at] = left;
  for (at /= 2; at > 0; at /= 2) {
    const Resources most = model::Most(tree[2 * at], tree[2 * at + 1]);
    if (most == tree[at]) {
      return;
    }
    tree[at] = most;
  }
}

std::optional<NodeId> SoftIndex::Search(const Tree& tree, const Resources& least,
                                        NodeId from) const {
  // Upwards from `from` to the first branch to its right with room, then down to its first leaf;
  // from the first node on, only down.
  if (Index(from) >= leaves_) {
    return std::nullopt;
  }
  std::size_t at = Index(from) == 0 ? 1 : leaves_ + Index(from);
  while (true) {
    if (tree[at].Covers(least)) {
      if (at >= leaves_) {
        return NodeAt(at - leaves_);
      }
      at *= 2;  // into the branch; what it has may lie on different nodes
      continue;
    }
    while ((at & 1U) != 0) {  // a right child: done with the parent, too
      at /= 2;
      if (at == 0) {
        return std::nullopt;
      }
    }
    ++at;
  }
}

}  // namespace trainyard::placements
