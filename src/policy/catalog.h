// SPDX-License-Identifier: Apache-2.0
// Every policy there is, by name: those of this folder and those of plug-ins.
#pragma once

#include <span>
#include <string_view>

#include "trainyard/policy_entry.h"

namespace trainyard {

// Sorted by name.
[[nodiscard]] std::span<const PolicyEntry> PolicyCatalog();

// Adds the policies of a plug-in, all or none; `origin` is its file. What the entries point to must
// last as long as the program. Spans of PolicyCatalog() end here: call it before names are
// resolved.
[[nodiscard]] Status AddPolicies(std::span<const PolicyEntry> entries, std::string_view origin);

// The plug-in that a policy of the catalogue comes from; empty: built in.
[[nodiscard]] std::string_view PolicyOrigin(std::string_view name);

// An unknown name or option is an error that lists what is known.
[[nodiscard]] Result<PolicyComponent> MakePolicy(const NamedOptions& named,
                                                 const PolicyContext& context);

}  // namespace trainyard
