// SPDX-License-Identifier: Apache-2.0
// Keeps a gang together: a job that fits in one node goes to the node where it fits best, a larger
// one to the fewest nodes that can hold it now.
#include <algorithm>
#include <array>

#include "placement/placements.h"

namespace trainyard {
namespace {

constexpr std::array<OptionSpec, 1> kOptions{{
    {"spread", OptionSpec::Kind::kNumber, "0",
     "1: a job that fits in one node may still be split if no node has room"},
}};

class Consolidated final : public Placement {
 public:
  explicit Consolidated(bool spread) : spread_(spread) {}
  [[nodiscard]] std::string_view name() const override { return "consolidated"; }

  [[nodiscard]] std::optional<Slices> Choose(const FreeGpus& free, const JobSpec& /*job*/,
                                             int gpus) const override {
    if (gpus <= free.largest_node()) {
      if (const std::optional<NodeId> node = BestFittingNode(free, gpus)) {
        return Slices{{.node = *node, .gpus = LowestGpus(free.gpus(*node), gpus)}};
      }
      if (!spread_) {
        return std::nullopt;
      }
    }
    return FewestNodes(free, gpus);
  }

  [[nodiscard]] std::optional<Slices> ChooseSplit(const FreeGpus& free, const JobSpec& /*job*/,
                                                  int gpus) const override {
    return FewestNodes(free, gpus);
  }

 private:
  // The fullest free nodes first; the rest goes where it fits best. O(nodes used).
  static std::optional<Slices> FewestNodes(const FreeGpus& free, int gpus) {
    Slices slices;
    int rest = gpus;
    for (int count = free.largest_node(); count > 0 && rest > 0; --count) {
      std::optional<NodeId> node = free.NodesWith(count).First();
      for (; node && rest >= count; node = free.NodesWith(count).First(Next(*node))) {
        slices.push_back({.node = *node, .gpus = free.gpus(*node)});
        rest -= count;
      }
      if (node && rest > 0) {  // this node has more than the rest: the smallest such one will do
        const NodeId last = LeastWith(free, rest, count, *node);
        slices.push_back({.node = last, .gpus = LowestGpus(free.gpus(last), rest)});
        rest = 0;
      }
    }
    if (rest > 0) {
      return std::nullopt;
    }
    std::sort(slices.begin(), slices.end(),
              [](const Slice& a, const Slice& b) { return a.node < b.node; });
    return slices;
  }

  static NodeId Next(NodeId node) { return NodeAt(Index(node) + 1); }

  // The node with the fewest free GPUs, but at least `gpus`, among those with fewer than `count`;
  // else `otherwise`. None of them has been used yet.
  static NodeId LeastWith(const FreeGpus& free, int gpus, int count, NodeId otherwise) {
    for (int fewer = gpus; fewer < count; ++fewer) {
      if (const std::optional<NodeId> node = free.NodesWith(fewer).First()) {
        return *node;
      }
    }
    return otherwise;
  }

  const bool spread_;
};

std::unique_ptr<Placement> Make(const Options& options) {
  return std::make_unique<Consolidated>(options.Flag("spread"));
}

}  // namespace

PlacementEntry ConsolidatedEntry() {
  return {"consolidated", "best fit in one node, the fewest nodes beyond", kOptions, Make};
}

}  // namespace trainyard
