// SPDX-License-Identifier: Apache-2.0
// Every placement there is, by name.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "trainyard/component.h"
#include "trainyard/options.h"
#include "trainyard/status.h"

namespace trainyard {

// Which GPUs jobs get; see Bundle. With neither, GPUs are counted cluster-wide and never named
// (`count`), or named by the policy.
struct PlacementComponent {
  std::unique_ptr<Placement> placement{};
  std::unique_ptr<Packer> packer{};
  bool by_policy = false;

  [[nodiscard]] bool names_gpus() const { return placement || packer || by_policy; }
};

struct PlacementEntry {
  std::string_view name;
  std::string_view help;  // one line
  std::span<const OptionSpec> options;
  PlacementComponent (*make)(const Options& options);
};

// Sorted by name.
[[nodiscard]] std::span<const PlacementEntry> PlacementCatalog();

// An unknown name or option is an error that lists what is known.
[[nodiscard]] Result<PlacementComponent> MakePlacement(const NamedOptions& named);

}  // namespace trainyard
