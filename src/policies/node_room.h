// SPDX-License-Identifier: Apache-2.0
// Whether gangs would fit together, for policies that choose by it: first fit in node order on a
// cluster where nothing is taken. A gang that fits in one node is not split; a larger one takes
// idle nodes and, for the rest, the first other node with room.
#pragma once

#include <cstdint>
#include <vector>

#include "trainyard/snapshot.h"

namespace trainyard::policies {

class NodeRoom {
 public:
  // Of the nodes that are up.
  explicit NodeRoom(const Snapshot& snapshot);

  // GPUs that have not been taken.
  [[nodiscard]] std::int64_t free() const;
  // Takes these. REQUIRES: they have not been taken.
  void Take(const Slices& slices);
  // Takes the GPUs if the gang fits. O(nodes) for all gangs of one size together, and more for each
  // that is larger than a node.
  bool Add(int gpus);

 private:
  [[nodiscard]] bool AddAcross(int gpus);
  // The first node with at least so many free GPUs; nodes.size(): none.
  [[nodiscard]] std::size_t FirstWith(int gpus);

  std::vector<int> free_;           // by node
  std::vector<std::size_t> first_;  // by GPU count: no node before it has so many
  int largest_ = 0;                 // GPUs of the largest node
};

}  // namespace trainyard::policies
