// SPDX-License-Identifier: Apache-2.0
// What the names of policies, placements and admissions mean under a preset.
#pragma once

#include <string_view>

#include "io/toml.h"
#include "scenario/preset_values.h"
#include "trainyard/component_entry.h"
#include "trainyard/options.h"
#include "trainyard/status.h"

namespace trainyard {

// The preset's table of such names: "policies". REQUIRES here and below: a policy, placement or
// admission.
[[nodiscard]] std::string_view TableOfNames(ComponentKind kind);

// The catalogue's name for what the user named: from the preset's table, or as it is. An unknown
// name is an error that lists what is known.
[[nodiscard]] Result<NamedOptions> InCatalogue(ComponentKind kind, const TomlTable& root,
                                               const PresetValues& values,
                                               const NamedOptions& asked);

// Whether the catalogue has the name and the name those options.
[[nodiscard]] Status CheckCatalogueName(ComponentKind kind, const NamedOptions& named);

}  // namespace trainyard
