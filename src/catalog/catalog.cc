// SPDX-License-Identifier: Apache-2.0
#include "catalog/catalog.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "admission/admissions.h"
#include "base/check.h"
#include "base/try.h"
#include "originals/originals.h"
#include "placement/placements.h"
#include "policy/policies.h"
#include "tuning/tunings.h"

namespace trainyard {
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
         {Policies(), Placements(), Admissions(), Tunings(), Originals()}) {
      entries.insert(entries.end(), some.begin(), some.end());
    }
    return AllEntries{.entries = SortedEntries(std::move(entries)), .origins = {}};
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
  const std::string what = std::string(NameOf(entry.kind)) + " '" + std::string(entry.name) + "'";
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

// Whether the factory made what the kind asks for.
Status CheckMade(ComponentKind kind, const std::string& name, const Components& made) {
  const int policies = (made.ordering ? 1 : 0) + (made.policy ? 1 : 0) + (made.selector ? 1 : 0);
  const bool is_there = kind == ComponentKind::kPolicy      ? policies == 1
                        : kind == ComponentKind::kAdmission ? made.admission != nullptr
                        : kind == ComponentKind::kGrouping  ? made.grouping != nullptr
                        : kind == ComponentKind::kTuning    ? made.tuning != nullptr
                                                            : true;
  if (is_there) {
    return {};
  }
  const std::string what = std::string(NameOf(kind)) + " '" + name + "'";
  return kind == ComponentKind::kPolicy
             ? Failed(what +
                      " made no component or two; expected an ordering, a policy or a selector")
             : Failed(what + " made no component; expected one of its kind");
}

}  // namespace

std::span<const ComponentEntry> Catalog(ComponentKind kind) {
  return EntriesOfKind(TheEntries().entries, kind);
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
          std::string(NameOf(entry.kind)) + " '" + std::string(entry.name) + "' exists already (" +
          (other == larger.origins.end() ? "built in" : "from " + other->second) +
          "); expected another name");
    }
    larger.entries.push_back(entry);
    larger.origins.emplace(KindAndName(entry.kind, entry.name), origin);
  }
  larger.entries = SortedEntries(std::move(larger.entries));
  TheEntries() = std::move(larger);
  return {};
}

std::string_view OriginOf(ComponentKind kind, std::string_view name) {
  const auto found = TheEntries().origins.find({kind, std::string(name)});
  return found == TheEntries().origins.end() ? std::string_view() : found->second;
}

bool IsLeftToPolicy(ComponentKind kind, std::string_view name) {
  const std::span<const ComponentEntry> all = Catalog(kind);
  const auto found = std::find_if(
      all.begin(), all.end(), [name](const ComponentEntry& entry) { return entry.name == name; });
  CHECK(found != all.end());
  return found->by_policy;
}

Result<Components> Make(ComponentKind kind, const NamedOptions& named,
                        const ComponentContext& context) {
  Result<Components> made = MakeFrom(TheEntries().entries, kind, named, context);
  if (made.ok()) {
    RETURN_IF_ERROR(CheckMade(kind, named.name, made.value()));
  }
  return made;
}

}  // namespace trainyard
