// SPDX-License-Identifier: Apache-2.0
// Buddy allocation as ElasticFlow's simulator does it (reference 8.1): everything is placed anew,
// in the order of the demands; nodes with GPUs left are kept in groups by the largest block they
// offer.
#pragma once

#include <span>
#include <vector>

#include "trainyard/component.h"
#include "trainyard/state.h"

namespace trainyard::originals {

// The order in which nodes are taken, and which nodes were taken together last time: nodes of
// different switches with the same number are taken in the order in which they became free.
struct NodeOrder final : Memory {
  void Serialize(StateStream& state) override { state(free, taken); }
  std::vector<NodeId> free;
  std::vector<std::vector<NodeId>> taken;

  // The last placing: of the same demands on the same nodes in the same order comes the same.
  struct Last {
    bool fitted = false;
    std::vector<NodeId> nodes;
    std::vector<int> gpus;     // of the demands
    std::vector<NodeId> left;  // of the nodes
  };
  Last last;
};

// In which order the jobs of the last placing give their nodes back.
enum class GivenBack {
  kAsPlaced,    // in the order in which they were placed
  kByDeadline,  // ended jobs first, then by deadline; equal ones as they were placed
};

// Sets the slices of each demand; false if they do not fit in this order. `slices`: as the last
// call with this order has left them, or empty. Only nodes of the largest size are used. REQUIRES:
// no GPU is taken. O(nodes log nodes + demands x groups + live jobs).
[[nodiscard]] bool PlaceInGroups(const PackRequest& ask, GivenBack given_back,
                                 std::vector<Slices>& slices, NodeOrder& order);

}  // namespace trainyard::originals
