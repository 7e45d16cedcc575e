// SPDX-License-Identifier: Apache-2.0
// Keeps a gang together: a job that fits in one node goes to the node where it fits best, a larger
// one to the fewest nodes that can hold it now.
#include <array>

#include "model/slices.h"
#include "placements/near_data.h"
#include "placements/placements.h"

namespace trainyard::placements {
namespace {

constexpr std::array<OptionSpec, 2> kConsolidatedOptions{{
    {"spread", OptionSpec::Kind::kNumber, "0",
     "1: a job that fits in one node may still be split if no node has room"},
    kLocalityOption,
}};

class Consolidated final : public Placement {
 public:
  explicit Consolidated(const Options& options) : spread_(options.Flag("spread")) {}
  [[nodiscard]] std::string_view name() const override { return "consolidated"; }

  [[nodiscard]] std::optional<Slices> Choose(const FreeGpus& free, const JobSpec& /*job*/,
                                             const Demand& demand) const override {
    const int gpus = demand.gpus;
    if (gpus <= free.largest_node()) {
      if (const std::optional<NodeId> node = BestFittingNode(free, gpus)) {
        return Slices{{.node = *node, .gpus = free.Lowest(*node, gpus)}};
      }
      if (!spread_ && !demand.may_split) {
        return std::nullopt;
      }
    }
    return FewestNodes(free, gpus);
  }

 private:
  const bool spread_;
};

}  // namespace

ComponentEntry ConsolidatedEntry() {
  return {ComponentKind::kPlacement, "consolidated",
          "best fit in one node, the fewest nodes beyond", kConsolidatedOptions,
          MakeNearData<Consolidated>};
}

}  // namespace trainyard::placements
