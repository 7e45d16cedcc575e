// SPDX-License-Identifier: Apache-2.0
// A component as the catalogue lists it: its kind, its name, its options and how it is made.
#pragma once

#include <cstdint>
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

enum class ComponentKind : std::uint8_t { kPolicy, kPlacement, kAdmission, kGrouping, kTuning };

// What a factory may ask for besides its options.
struct ComponentContext {
  // The samples of a named prior distribution (Gittins ranking), one number per line.
  std::function<Result<std::vector<double>>(const std::string& name)> read_samples;
  // What loader workers are worth (Requires::named_devices); outlives the component. Null: not
  // known.
  const LoaderProfiles* loader = nullptr;
};

// What a selector chooses among, as names with options: every combination, placements fastest,
// policies slowest. An empty list: what the run names.
struct Candidates {
  std::vector<std::string> policies{};
  std::vector<std::string> admissions{};
  std::vector<std::string> placements{};
};

// What an entry makes, by its kind.
struct Components {
  // kPolicy: exactly one of these three.
  std::unique_ptr<Ordering> ordering{};
  std::unique_ptr<Policy> policy{};
  std::unique_ptr<Selector> selector{};
  Candidates candidates{};  // with a selector
  // kPlacement. With both, the packer places where nothing is kept (Walk::keep_running). With
  // neither, GPUs are counted cluster-wide and never named, or named by the policy.
  std::unique_ptr<Placement> placement{};
  std::unique_ptr<Packer> packer{};
  // The other kinds: this one.
  std::unique_ptr<Admission> admission{};
  std::unique_ptr<Grouping> grouping{};
  std::unique_ptr<Tuning> tuning{};
};

// What texts and spans point to must outlive the program or, of a plug-in, the shared object.
struct ComponentEntry {
  ComponentKind kind;
  std::string_view name;  // of a-z, 0-9 and '-'; each once per kind
  std::string_view help;  // one line
  std::span<const OptionSpec> options;
  // Makes the component. Errors: options that do not go together, or a context that lacks what they
  // need; as InvalidArgument, with what was expected.
  Result<Components> (*make)(const Options& options, const ComponentContext& context);
  // kPolicy: used unless the user or the preset names another; empty: the preset's default.
  std::string_view admission{};
  std::string_view placement{};  // likewise
  // kPlacement: the policy names the GPUs (May::name_gpus). kAdmission: the policy judges
  // arrivals (May::admit), the admission admits nobody.
  bool by_policy = false;
};

}  // namespace trainyard
