// SPDX-License-Identifier: Apache-2.0
#include "originals/sia/placement_published.h"

#include <algorithm>
#include <numeric>

namespace trainyard::originals {
namespace {

class NodeWalk {
 public:
  NodeWalk(int nodes, int node_gpus)
      : node_gpus_(node_gpus), free_(static_cast<std::size_t>(nodes), node_gpus) {}

  // From the nodes with `least` free GPUs at least, in turn, so many at most from each.
  void Take(int gpus, int least, std::vector<int>& into) {
    std::size_t last = next_;
    bool any = false;
    for (std::size_t i = 0; i < free_.size() && gpus > 0; ++i) {
      const std::size_t node = (next_ + i) % free_.size();
      if (free_[node] < least) {
        continue;
      }
      const int taken = std::min(free_[node], gpus);
      free_[node] -= taken;
      gpus -= taken;
      into.insert(into.end(), static_cast<std::size_t>(taken), static_cast<int>(node));
      last = node;
      any = true;
    }
    if (any) {
      next_ = (last + 1) % free_.size();
    }
  }
  void Place(int gpus, std::vector<int>& into) {
    Take(gpus / node_gpus_ * node_gpus_, node_gpus_, into);
    Take(gpus % node_gpus_, 1, into);
  }

 private:
  const int node_gpus_;
  std::vector<int> free_;
  std::size_t next_ = 0;
};

}  // namespace

std::vector<std::vector<int>> PlaceAsPublished(int nodes, int node_gpus,
                                               std::span<const int> requests) {
  std::vector<std::size_t> order(requests.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return requests[a] > requests[b]; });
  std::vector<std::vector<int>> placed(requests.size());
  if (nodes == 0) {
    return placed;
  }
  NodeWalk walk(nodes, node_gpus);
  for (const std::size_t job : order) {
    walk.Place(requests[job], placed[job]);
    std::sort(placed[job].begin(), placed[job].end());
  }
  return placed;
}

}  // namespace trainyard::originals
