// SPDX-License-Identifier: Apache-2.0
// For tests: a placement whose choice can be seen at a glance.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "trainyard/component.h"
#include "trainyard/free_gpus.h"

namespace trainyard {

// The lowest node with room, its lowest GPUs; never across nodes.
class LowestNode final : public Placement {
 public:
  [[nodiscard]] std::string_view name() const override { return "lowest-node"; }
  [[nodiscard]] std::optional<Slices> Choose(const FreeGpus& free, const JobSpec& /*job*/,
                                             const Demand& demand) const override {
    const int gpus = demand.gpus;
    for (std::size_t node = 0; node < free.cluster().nodes.size(); ++node) {
      for (int first = 0; first + gpus <= free.cluster().nodes[node].gpus; ++first) {
        const std::uint64_t mask = ((std::uint64_t{1} << gpus) - 1) << first;
        if ((free.gpus(NodeAt(node)) & mask) == mask) {
          return Slices{{.node = NodeAt(node), .gpus = mask}};
        }
      }
    }
    return std::nullopt;
  }
};

}  // namespace trainyard
