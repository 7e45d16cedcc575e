// SPDX-License-Identifier: Apache-2.0
// Finds an entry of a component catalogue and checks the options that came with its name.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "trainyard/component_entry.h"
#include "trainyard/options.h"
#include "trainyard/status.h"

namespace trainyard {

// As users write it: "policy".
[[nodiscard]] constexpr std::string_view NameOf(ComponentKind kind) {
  switch (kind) {
    case ComponentKind::kPolicy:
      return "policy";
    case ComponentKind::kPlacement:
      return "placement";
    case ComponentKind::kAdmission:
      return "admission";
    case ComponentKind::kGrouping:
      return "grouping";
    case ComponentKind::kTuning:
      return "tuning";
  }
  return "";
}

// The entry of that name with its options. `what` is the kind of component in messages ("policy").
template <typename Entry>
[[nodiscard]] Result<std::pair<const Entry*, Options>> LookUp(std::span<const Entry> catalog,
                                                              const NamedOptions& named,
                                                              std::string_view what) {
  const auto entry = std::find_if(catalog.begin(), catalog.end(),
                                  [&named](const Entry& e) { return e.name == named.name; });
  if (entry == catalog.end()) {
    std::vector<std::string_view> names;
    for (const Entry& known : catalog) {
      names.push_back(known.name);
    }
    return InvalidArgument(UnknownName(what, named.name, names));
  }
  ASSIGN_OR_RETURN(Options options, Options::Make(entry->options, named,
                                                  std::string(what) + " '" + named.name + "'"));
  return std::pair{&*entry, std::move(options)};
}

// A folder lists its components in a macro of its own, a line X(Name) for each; these declare
// NameEntry() for such a line, and call it in a list.
#define TRAINYARD_DECLARE_ENTRY(name) [[nodiscard]] ComponentEntry name##Entry();
#define TRAINYARD_ENTRY(name) name##Entry(),

// By kind, then by name.
[[nodiscard]] inline std::vector<ComponentEntry> SortedEntries(
    std::vector<ComponentEntry> entries) {
  std::sort(entries.begin(), entries.end(), [](const ComponentEntry& a, const ComponentEntry& b) {
    return std::pair(a.kind, a.name) < std::pair(b.kind, b.name);
  });
  return entries;
}

// The entries of one kind. REQUIRES: sorted as above.
[[nodiscard]] inline std::span<const ComponentEntry> EntriesOfKind(
    std::span<const ComponentEntry> entries, ComponentKind kind) {
  const auto [first, last] = std::equal_range(
      entries.begin(), entries.end(), ComponentEntry{.kind = kind},
      [](const ComponentEntry& a, const ComponentEntry& b) { return a.kind < b.kind; });
  return {first, last};
}

// The components of that name. An unknown name or option is an error that lists what is known.
[[nodiscard]] inline Result<Components> MakeFrom(std::span<const ComponentEntry> entries,
                                                 ComponentKind kind, const NamedOptions& named,
                                                 const ComponentContext& context = {}) {
  ASSIGN_OR_RETURN(const auto found, LookUp(EntriesOfKind(entries, kind), named, NameOf(kind)));
  return found.first->make(found.second, context);
}

}  // namespace trainyard
