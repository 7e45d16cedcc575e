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

struct PlacementEntry {
  std::string_view name;
  std::string_view help;  // one line
  std::span<const OptionSpec> options;
  std::unique_ptr<Placement> (*make)(const Options& options);
};

// Sorted by name.
[[nodiscard]] std::span<const PlacementEntry> PlacementCatalog();

// An unknown name or option is an error that lists what is known.
[[nodiscard]] Result<std::unique_ptr<Placement>> MakePlacement(const NamedOptions& named);

}  // namespace trainyard
