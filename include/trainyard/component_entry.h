// SPDX-License-Identifier: Apache-2.0
// A component as the catalogue lists it: its kind, its name, its options and how it is made.
//
// The entries of a plug-in are taken into the catalogue when it is loaded, before anything runs. An
// entry is refused, and the plug-in with it, if its name is not usable or there already, if it has
// no factory, or if the default of an option is not of the option's kind.
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

namespace loader {
class LoaderProfiles;
}

// The kinds that users name, by --policy, --placement and so on. An ordering, a general policy and
// a selector are all of kind kPolicy; a placement and a packer of kind kPlacement.
enum class ComponentKind : std::uint8_t { kPolicy, kPlacement, kAdmission, kGrouping, kTuning };

// What a factory may ask for besides its options. Valid until the factory returns, but for what is
// marked otherwise.
struct ComponentContext {
  // The samples of a named prior distribution (Gittins ranking, Tiresias, NSDI'19), from a file
  // with a header and one number per line: beside the profiles of the run, or at that path. Errors:
  // no such file, no number, no samples. May be empty where there is no run (tests).
  std::function<Result<std::vector<double>>(const std::string& name)> read_samples;
  // What loader workers are worth (Requires::named_devices); outlives the component. Null: not
  // known. For components in the tree: the type is not public.
  const loader::LoaderProfiles* loader = nullptr;
};

// What a selector chooses among, as names with options ("las:quantum=600"): every combination,
// numbered from 0 with the placements changing fastest and the policies slowest. An empty list of
// admissions or placements: what the run names. REQUIRES: at least one policy.
struct Candidates {
  std::vector<std::string> policies{};
  std::vector<std::string> admissions{};
  std::vector<std::string> placements{};
};

// What an entry makes, by its kind; all else stays null. The run owns the components.
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

// One component of the catalogue. What texts and spans point to must last as long as the program
// or, of a plug-in, the shared object, which is never unloaded: literals and constants at namespace
// scope do.
struct ComponentEntry {
  ComponentKind kind;
  std::string_view name;                // of a-z, 0-9 and '-'; each once per kind
  std::string_view help;                // one line, for `trainyard policies`
  std::span<const OptionSpec> options;  // in the order in which they are printed; may be empty
  // Makes the component, with `options` already checked against the table. Errors: options that do
  // not go together, or a context that lacks what they need; as InvalidArgument, with what was
  // expected. Called at least once for each run that names the component, and for each candidate of
  // a selector. Making none, another kind, or another name than the entry's is an error of the run.
  Result<Components> (*make)(const Options& options, const ComponentContext& context);
  // kPolicy: used unless the user or the preset names another; empty: the preset's default.
  std::string_view admission{};
  std::string_view placement{};  // likewise
  // kPlacement: the policy names the GPUs (May::name_gpus). kAdmission: the policy judges
  // arrivals (May::admit), the admission admits nobody.
  bool by_policy = false;
  // kPolicy, kGrouping: what the component goes by and jobs or profiles need not state. Where they
  // do not, the user of a trace is warned.
  struct GoesBy {
    bool deadlines = false;
    bool stages = false;                     // StageTimes: which jobs can share GPUs
    bool gpu_types = false;                  // how fast jobs are on each type of GPU
    bool pairs = false;                      // how fast two jobs are on the same GPUs
    std::vector<std::string> named_types{};  // of GPU, that options name
  } goes_by{};
  // The same where it depends on the options, which are checked; null: `goes_by`.
  GoesBy (*goes_by_with)(const Options& options) = nullptr;
};

}  // namespace trainyard
