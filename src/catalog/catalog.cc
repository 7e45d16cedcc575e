// SPDX-License-Identifier: Apache-2.0
#include "catalog/catalog.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "admissions/admissions.h"
#include "base/check.h"
#include "base/try.h"
#include "originals/originals.h"
#include "placements/placements.h"
#include "policies/policies.h"

namespace trainyard::catalog {
namespace {

using KindAndName = std::pair<ComponentKind, std::string>;

struct AllEntries {
  std::vector<ComponentEntry> entries;         // by kind and name
  std::map<KindAndName, std::string> origins;  // of plug-ins
};

AllEntries& TheEntries() {
  static AllEntries all = [] {
    std::vector<ComponentEntry> entries;
    for (const std::span<const ComponentEntry> some :
         {policies::Policies(), placements::Placements(), admissions::Admissions(),
          originals::Originals()}) {
      entries.insert(entries.end(), some.begin(), some.end());
    }
    return AllEntries{.entries = base::SortedEntries(std::move(entries)), .origins = {}};
  }();
  return all;
}

bool IsUsableName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

// The entry by itself: a name that can be written, a factory, defaults of their kind.
Status CheckEntry(const ComponentEntry& entry) {
  const std::string what =
      std::string(base::NameOf(entry.kind)) + " '" + std::string(entry.name) + "'";
  if (!IsUsableName(entry.name)) {
    return InvalidArgument(what + " has no usable name; expected a-z, 0-9 and '-'");
  }
  if (entry.make == nullptr) {
    return InvalidArgument(what + " has no factory; expected ComponentEntry::make");
  }
  NamedOptions defaults{.name = std::string(entry.name), .values = {}};
  for (const OptionSpec& option : entry.options) {
    defaults.values.emplace_back(option.key, option.fallback);
  }
  const Result<Options> options = Options::Make(entry.options, defaults, what);
  return options.ok() ? Status() : options.error();
}

// The names of what a factory made of that kind.
std::vector<std::string_view> NamesMade(ComponentKind kind, const Components& made) {
  std::vector<std::string_view> names;
  const auto add = [&names, kind](ComponentKind of, const auto& component) {
    if (kind == of && component) {
      names.push_back(component->name());
    }
  };
  add(ComponentKind::kPolicy, made.ordering);
  add(ComponentKind::kPolicy, made.policy);
  add(ComponentKind::kPolicy, made.selector);
  add(ComponentKind::kPlacement, made.placement);
  add(ComponentKind::kPlacement, made.packer);
  add(ComponentKind::kAdmission, made.admission);
  add(ComponentKind::kGrouping, made.grouping);
  add(ComponentKind::kTuning, made.tuning);
  return names;
}

// Whether the factory made a component of the kind, with the name under which it is found.
Status CheckMade(const ComponentEntry& entry, const Components& made) {
  const std::vector<std::string_view> names = NamesMade(entry.kind, made);
  const std::string what =
      std::string(base::NameOf(entry.kind)) + " '" + std::string(entry.name) + "'";
  // Of the program's own placements some make nothing: GPUs are counted, or the policy names them.
  const bool is_placement = entry.kind == ComponentKind::kPlacement;
  if (names.empty() && !(is_placement && OriginOf(entry.kind, entry.name).empty())) {
    return Failed(what + " made no component; expected one of its kind");
  }
  if (names.size() > 1 && !is_placement) {  // a placement may pack whole lists, too
    return Failed(what + " made two components; expected one of its kind");
  }
  for (const std::string_view name : names) {
    if (name != entry.name) {
      return Failed(what + " made a component that calls itself '" + std::string(name) +
                    "'; expected the name of its entry");
    }
  }
  return {};
}

const ComponentEntry* Find(ComponentKind kind, std::string_view name) {
  const std::span<const ComponentEntry> all = Catalog(kind);
  const auto found = std::find_if(
      all.begin(), all.end(), [name](const ComponentEntry& entry) { return entry.name == name; });
  return found == all.end() ? nullptr : &*found;
}

// "; 'first-fit' is a placement: --placement first-fit", if the name is that of another kind.
std::string OtherKind(const std::string& name) {
  for (const ComponentEntry& entry : TheEntries().entries) {
    if (entry.name == name) {
      std::string hint = "; '" + name + "' is a";
      hint += entry.kind == ComponentKind::kAdmission ? "n " : " ";
      hint.append(base::NameOf(entry.kind)).append(": --").append(base::NameOf(entry.kind));
      return hint.append(" ").append(name);
    }
  }
  return {};
}

}  // namespace

std::span<const ComponentEntry> Catalog(ComponentKind kind) {
  return base::EntriesOfKind(TheEntries().entries, kind);
}

Status AddComponents(std::span<const ComponentEntry> entries, std::string_view origin) {
  AllEntries larger = TheEntries();
  for (const ComponentEntry& entry : entries) {
    RETURN_IF_ERROR(CheckEntry(entry));
    const auto same = [&entry](const ComponentEntry& known) {
      return known.kind == entry.kind && known.name == entry.name;
    };
    if (std::any_of(larger.entries.begin(), larger.entries.end(), same)) {
      const auto other = larger.origins.find({entry.kind, std::string(entry.name)});
      return InvalidArgument(
          std::string(base::NameOf(entry.kind)) + " '" + std::string(entry.name) +
          "' exists already (" +
          (other == larger.origins.end() ? "built in" : "from " + other->second) +
          "); expected another name");
    }
    larger.entries.push_back(entry);
    larger.origins.emplace(KindAndName(entry.kind, entry.name), origin);
  }
  larger.entries = base::SortedEntries(std::move(larger.entries));
  TheEntries() = std::move(larger);
  return {};
}

std::string_view OriginOf(ComponentKind kind, std::string_view name) {
  const auto found = TheEntries().origins.find({kind, std::string(name)});
  return found == TheEntries().origins.end() ? std::string_view() : found->second;
}

const ComponentEntry& EntryOf(ComponentKind kind, std::string_view name) {
  const ComponentEntry* const found = Find(kind, name);
  CHECK(found != nullptr);
  return *found;
}

Result<Components> Make(ComponentKind kind, const NamedOptions& named,
                        const ComponentContext& context) {
  const ComponentEntry* const entry = Find(kind, named.name);
  Result<Components> made = base::MakeFrom(TheEntries().entries, kind, named, context);
  if (entry == nullptr) {
    return InvalidArgument(made.error().message + OtherKind(named.name));
  }
  if (made.ok()) {
    RETURN_IF_ERROR(CheckMade(*entry, made.value()));
  }
  return made;
}

}  // namespace trainyard::catalog
