// SPDX-License-Identifier: Apache-2.0
// Finds nodes by free GPUs and by the CPUs, memory and storage bandwidth they have left.
#pragma once

#include <optional>
#include <vector>

#include "trainyard/free_gpus.h"
#include "trainyard/ids.h"
#include "trainyard/resources.h"

namespace trainyard::placements {

// One tree over all nodes for each number of free GPUs, and one for all numbers together. A branch
// keeps the most of each resource that a node below it has, so a search passes over whole branches
// without room.
class SoftIndex {
 public:
  // `by_count`: searches may ask for a number of free GPUs.
  SoftIndex(const FreeGpus& free, bool by_count);

  // The node's free GPUs or resources have changed. O(log nodes).
  void Update(NodeId node);

  // The first node at or after `from` with a free GPU (or with exactly `count` of them) and at
  // least `least`. What a node does not state it has without limit. O(log nodes) where few branches
  // have enough of each resource, but on different nodes.
  [[nodiscard]] std::optional<NodeId> First(const Resources& least, NodeId from = NodeId{0}) const {
    return Search(trees_.front(), least, from);
  }
  [[nodiscard]] std::optional<NodeId> FirstWith(int count, const Resources& least,
                                                NodeId from = NodeId{0}) const {
    return Search(trees_[static_cast<std::size_t>(count)], least, from);
  }

  // What is left on the node.
  [[nodiscard]] Resources Left(NodeId node) const;

 private:
  using Tree = std::vector<Resources>;

  [[nodiscard]] std::optional<NodeId> Search(const Tree& tree, const Resources& least,
                                             NodeId from) const;
  void Set(Tree& tree, NodeId node, const Resources& left) const;
  void Build(Tree& tree) const;

  const FreeGpus& free_;
  std::size_t leaves_ = 1;           // a power of two
  std::vector<Tree> trees_;          // 0: any number of free GPUs
  std::vector<std::uint8_t> count_;  // free GPUs by node, as indexed
};

}  // namespace trainyard::placements
