// SPDX-License-Identifier: Apache-2.0
// Every grouping there is, by name.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "trainyard/component.h"
#include "trainyard/options.h"
#include "trainyard/status.h"

namespace trainyard {

struct GroupingEntry {
  std::string_view name;
  std::string_view help;  // one line
  std::span<const OptionSpec> options;
  Result<std::unique_ptr<Grouping>> (*make)(const Options& options);
};

[[nodiscard]] GroupingEntry InterleaveEntry();

// Sorted by name.
[[nodiscard]] std::span<const GroupingEntry> GroupingCatalog();

// An unknown name or option is an error that lists what is known.
[[nodiscard]] Result<std::unique_ptr<Grouping>> MakeGrouping(const NamedOptions& named);

}  // namespace trainyard
