// SPDX-License-Identifier: Apache-2.0
// A policy as the catalogue lists it: its name, its options and how it is made.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainyard/component.h"
#include "trainyard/options.h"
#include "trainyard/status.h"

namespace trainyard {

class LoaderProfiles;

// What a factory may ask for besides its options.
struct PolicyContext {
  // The samples of a named prior distribution (Gittins ranking), one number per line.
  std::function<Result<std::vector<double>>(const std::string& name)> read_samples;
  // What loader workers are worth (Needs::named_devices); outlives the policy. Null: not known.
  const LoaderProfiles* loader = nullptr;
};

// What a selector chooses among, as names with options: every combination, placements fastest,
// policies slowest. An empty list: what the run names.
struct Candidates {
  std::vector<std::string> policies{};
  std::vector<std::string> admissions{};
  std::vector<std::string> placements{};
};

// One of ordering, policy and selector is set; with a selector, its candidates.
struct PolicyComponent {
  std::unique_ptr<Ordering> ordering{};
  std::unique_ptr<Policy> policy{};
  std::unique_ptr<Selector> selector{};
  Candidates candidates{};
};

struct PolicyEntry {
  std::string_view name;
  std::string_view help;  // one line
  std::span<const OptionSpec> options;
  Result<PolicyComponent> (*make)(const Options& options, const PolicyContext& context);
  // Used unless the user or the preset names another; empty: the preset's default.
  std::string_view admission{};
  std::string_view placement{};  // likewise
};

}  // namespace trainyard
