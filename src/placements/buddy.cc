// SPDX-License-Identifier: Apache-2.0
// Buddy allocation (ElasticFlow, ASPLOS'23, section 4.3): inside a node a job takes an aligned
// block of the next power of two, so that powers of two never fragment each other; a job of a
// node's size or more owns whole nodes.
#include <algorithm>
#include <array>
#include <bit>

#include "model/slices.h"
#include "placements/near_data.h"
#include "placements/placements.h"

namespace trainyard::placements {
namespace {

constexpr std::array<OptionSpec, 1> kBuddyOptions{{kLocalityOption}};

class Buddy final : public Placement {
 public:
  explicit Buddy(std::string_view name) : name_(name) {}
  [[nodiscard]] std::string_view name() const override { return name_; }

  [[nodiscard]] std::optional<Slices> Choose(const FreeGpus& free, const JobSpec& /*job*/,
                                             const Demand& demand) const override {
    const int gpus = demand.gpus;
    const int whole = free.largest_node();
    std::optional<Slices> chosen =
        gpus < whole ? InOneNode(free, gpus) : WholeNodes(free, gpus, whole);
    return !chosen && demand.may_split ? FewestNodes(free, gpus) : chosen;
  }

 private:
  // The aligned block that breaks up the smallest free block; among equals in the node with the
  // fewest free GPUs, then the first. O(nodes x GPUs) at worst, O(GPUs) where a block fits exactly.
  static std::optional<Slices> InOneNode(const FreeGpus& free, int gpus) {
    const int block = static_cast<int>(std::bit_ceil(static_cast<unsigned>(gpus)));
    std::optional<Slice> best;
    int best_broken = 0;
    for (int count = free.SmallestCount(gpus); count > 0;
         count = count < free.largest_node() ? free.SmallestCount(count + 1) : 0) {
      for (std::optional<NodeId> node = free.NodesWith(count).First(); node;
           node = free.NodesWith(count).First(NodeAt(Index(*node) + 1))) {
        const int size = free.cluster().nodes[Index(*node)].gpus;
        for (int first = 0; first + gpus <= size; first += block) {
          const int broken = FreeBlockAround(free.gpus(*node), size, first, block);
          if (broken > 0 && (!best || broken < best_broken)) {
            best = Slice{.node = *node, .gpus = model::AllGpus(gpus) << first};
            best_broken = broken;
          }
        }
        if (best_broken == block) {
          return Slices{*best};
        }
      }
    }
    return best ? std::optional<Slices>({*best}) : std::nullopt;
  }

  // The size of the largest free aligned block that holds GPUs first .. first + block - 1; 0 if
  // these are not free themselves. A block may end with its node.
  static int FreeBlockAround(std::uint64_t free, int size, int first, int block) {
    int largest = 0;
    for (int around = block; around <= static_cast<int>(std::bit_ceil(static_cast<unsigned>(size)));
         around *= 2) {
      const int from = first / around * around;
      const std::uint64_t lane = model::AllGpus(std::min(around, size - from)) << from;
      if ((free & lane) != lane) {
        break;
      }
      largest = around;
    }
    return largest;
  }

  static std::optional<Slices> WholeNodes(const FreeGpus& free, int gpus, int whole) {
    Slices slices;
    int rest = gpus;
    for (std::optional<NodeId> node = free.NodesWith(whole).First(); node && rest > 0;
         node = free.NodesWith(whole).First(NodeAt(Index(*node) + 1))) {
      const int here = std::min(rest, whole);
      slices.push_back({.node = *node, .gpus = model::AllGpus(here)});
      rest -= here;
    }
    return rest == 0 ? std::optional<Slices>(std::move(slices)) : std::nullopt;
  }

  const std::string_view name_;
};

Result<Components> MakeBuddy(const Options& options, const ComponentContext& /*context*/) {
  return Components{.placement = NearData(options, BuddyBlocks("buddy"))};
}

}  // namespace

std::unique_ptr<Placement> BuddyBlocks(std::string_view name) {
  return std::make_unique<Buddy>(name);
}

ComponentEntry BuddyEntry() {
  return {ComponentKind::kPlacement, "buddy",
          "aligned power-of-two blocks in a node, whole nodes beyond", kBuddyOptions, MakeBuddy};
}

}  // namespace trainyard::placements
