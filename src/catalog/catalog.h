// SPDX-License-Identifier: Apache-2.0
// Every component there is, by kind and name: those of the program and those of plug-ins.
#pragma once

#include <span>
#include <string_view>

#include "base/catalog_lookup.h"
#include "trainyard/component_entry.h"

namespace trainyard::catalog {

// Sorted by name.
[[nodiscard]] std::span<const ComponentEntry> Catalog(ComponentKind kind);

// Adds the components of a plug-in, all or none; `origin` is its file. What the entries point to
// must last as long as the program. Spans of Catalog() end here: call it before names are resolved.
[[nodiscard]] Status AddComponents(std::span<const ComponentEntry> entries,
                                   std::string_view origin);

// The plug-in that a component of the catalogue comes from; empty: built in.
[[nodiscard]] std::string_view OriginOf(ComponentKind kind, std::string_view name);

// Valid until components are added. REQUIRES: there is such a component.
[[nodiscard]] const ComponentEntry& EntryOf(ComponentKind kind, std::string_view name);

// An unknown name or option is an error that lists what is known; so is a context that lacks what
// the component needs.
[[nodiscard]] Result<Components> Make(ComponentKind kind, const NamedOptions& named,
                                      const ComponentContext& context = {});

}  // namespace trainyard::catalog
