// SPDX-License-Identifier: Apache-2.0
// Counts GPUs cluster-wide and names none: no fragmentation, the upper bound of any placement. The
// published simulators use it for comparisons; it cannot serve real machines.
#include "placement/placements.h"

namespace trainyard {
namespace {

class Count final : public Placement {
 public:
  [[nodiscard]] std::string_view name() const override { return "count"; }
  [[nodiscard]] std::optional<Slices> Choose(const FreeGpus& /*free*/, const JobSpec& /*job*/,
                                             int /*gpus*/) const override {
    return std::nullopt;
  }
  [[nodiscard]] bool names_gpus() const override { return false; }
};

std::unique_ptr<Placement> MakeCount(const Options& /*options*/) {
  return std::make_unique<Count>();
}

}  // namespace

PlacementEntry CountEntry() {
  return {"count", "counts GPUs cluster-wide, names none (simulation only)", {}, MakeCount};
}

}  // namespace trainyard
