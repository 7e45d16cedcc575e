// SPDX-License-Identifier: Apache-2.0
// No choice at all: the policy names the GPUs (Gandiva's node groups share nodes over time).
#include "placement/placements.h"

namespace trainyard {
namespace {

class Gandiva final : public Placement {
 public:
  [[nodiscard]] std::string_view name() const override { return "gandiva"; }
  [[nodiscard]] std::optional<Slices> Choose(const FreeGpus& /*free*/, const JobSpec& /*job*/,
                                             int /*gpus*/) const override {
    return std::nullopt;
  }
  [[nodiscard]] bool by_policy() const override { return true; }
};

std::unique_ptr<Placement> MakeGandiva(const Options& /*options*/) {
  return std::make_unique<Gandiva>();
}

}  // namespace

PlacementEntry GandivaEntry() {
  return {"gandiva", "the policy's own choice of GPUs (policy gandiva)", {}, MakeGandiva};
}

}  // namespace trainyard
