// SPDX-License-Identifier: Apache-2.0
// Scattered: the first free GPUs in node order, however many nodes they lie on. Option `overshoot`
// is the form of the Blox simulator: of each node it takes as many as the whole job
// needs, and finds a place only if the sum comes out exactly.
#include <algorithm>
#include <array>

#include "model/slices.h"
#include "placements/near_data.h"
#include "placements/placements.h"

namespace trainyard::placements {
namespace {

constexpr std::array<OptionSpec, 2> kScatteredOptions{{
    {"overshoot", OptionSpec::Kind::kNumber, "0",
     "1: as published with Blox, which misses places that are there"},
    kLocalityOption,
}};

class Scattered final : public Placement {
 public:
  explicit Scattered(const Options& options) : overshoot_(options.Flag("overshoot")) {}
  [[nodiscard]] std::string_view name() const override { return "scattered"; }

  [[nodiscard]] std::optional<Slices> Choose(const FreeGpus& free, const JobSpec& /*job*/,
                                             const Demand& demand) const override {
    const int gpus = demand.gpus;
    Slices slices;
    int left = gpus;
    for (std::optional<NodeId> node = FirstNodeWith(free, 1, NodeId{0}); node && left > 0;
         node = FirstNodeWith(free, 1, NodeAt(Index(*node) + 1))) {
      const int here = std::min(overshoot_ ? gpus : left, free.count(*node));
      slices.push_back({.node = *node, .gpus = free.Lowest(*node, here)});
      left -= here;
    }
    return left == 0 ? std::optional<Slices>(std::move(slices)) : std::nullopt;
  }

 private:
  const bool overshoot_;
};

}  // namespace

ComponentEntry ScatteredEntry() {
  return {ComponentKind::kPlacement, "scattered", "the first free GPUs, on any nodes",
          kScatteredOptions, MakeNearData<Scattered>};
}

}  // namespace trainyard::placements
