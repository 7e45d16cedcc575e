// SPDX-License-Identifier: Apache-2.0
// Every tuning there is, by name.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "trainyard/component.h"
#include "trainyard/options.h"
#include "trainyard/policy_entry.h"
#include "trainyard/status.h"

namespace trainyard {

struct TuningEntry {
  std::string_view name;
  std::string_view help;  // one line
  std::span<const OptionSpec> options;
  Result<std::unique_ptr<Tuning>> (*make)(const Options& options, const PolicyContext& context);
};

// Sorted by name.
[[nodiscard]] std::span<const TuningEntry> TuningCatalog();

// An unknown name or option is an error that lists what is known; so is a context that lacks what
// the tuning needs.
[[nodiscard]] Result<std::unique_ptr<Tuning>> MakeTuning(const NamedOptions& named,
                                                         const PolicyContext& context);

}  // namespace trainyard
