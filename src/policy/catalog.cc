// SPDX-License-Identifier: Apache-2.0
#include "policy/catalog.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "base/catalog_lookup.h"
#include "policy/policies.h"

namespace trainyard {
namespace {

struct Catalog {
  std::vector<PolicyEntry> entries;                         // by name
  std::map<std::string, std::string, std::less<>> origins;  // by name; those of plug-ins
};

Catalog& TheCatalog() {
  static const std::array kEntries{
      AntManEntry(), AutoEntry(),       ChronusEntry(),       DrfEntry(),
      EdfEntry(),    ElasticEdfEntry(), ElasticFlowEntry(),   FifoEntry(),
      FjfEntry(),    FtfEntry(),        GandivaPolicyEntry(), LasEntry(),
      MuriLEntry(),  MuriSEntry(),      OptimusEntry(),       SjfEntry(),
      SrsfEntry(),   SrtfEntry(),       SynergyOptEntry(),    TetrisEntry(),
      ThemisEntry(), TiresiasEntry(),   TorchloaderEntry(),
  };
  static Catalog catalog{.entries = {kEntries.begin(), kEntries.end()}, .origins = {}};
  return catalog;
}

bool IsName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

// The entry by itself: a name that can be written, a factory, defaults of their kind.
Status CheckEntry(const PolicyEntry& entry) {
  const std::string policy = "policy '" + std::string(entry.name) + "'";
  if (!IsName(entry.name)) {
    return InvalidArgument(policy + " has no usable name; expected a-z, 0-9 and '-'");
  }
  if (entry.make == nullptr) {
    return InvalidArgument(policy + " has no factory; expected PolicyEntry::make");
  }
  NamedOptions defaults{.name = std::string(entry.name), .values = {}};
  for (const OptionSpec& option : entry.options) {
    defaults.values.emplace_back(option.key, option.fallback);
  }
  const Result<Options> options = Options::Make(entry.options, defaults, policy);
  return options.ok() ? Status() : options.error();
}

}  // namespace

std::span<const PolicyEntry> PolicyCatalog() { return TheCatalog().entries; }

Status AddPolicies(std::span<const PolicyEntry> entries, std::string_view origin) {
  Catalog larger = TheCatalog();
  for (const PolicyEntry& entry : entries) {
    if (Status status = CheckEntry(entry); !status.ok()) {
      return status;
    }
    const auto place = std::lower_bound(
        larger.entries.begin(), larger.entries.end(), entry.name,
        [](const PolicyEntry& known, std::string_view name) { return known.name < name; });
    if (place != larger.entries.end() && place->name == entry.name) {
      const auto other = larger.origins.find(entry.name);
      return InvalidArgument(
          "policy '" + std::string(entry.name) + "' exists already (" +
          (other == larger.origins.end() ? "built in" : "from " + other->second) +
          "); expected another name");
    }
    larger.entries.insert(place, entry);
    larger.origins.emplace(entry.name, origin);
  }
  TheCatalog() = std::move(larger);
  return {};
}

std::string_view PolicyOrigin(std::string_view name) {
  const auto found = TheCatalog().origins.find(name);
  return found == TheCatalog().origins.end() ? std::string_view() : found->second;
}

Result<PolicyComponent> MakePolicy(const NamedOptions& named, const PolicyContext& context) {
  const auto found = LookUp(PolicyCatalog(), named, "policy");
  if (!found.ok()) {
    return found.error();
  }
  Result<PolicyComponent> made = found.value().first->make(found.value().second, context);
  const auto count = [](const PolicyComponent& parts) {
    return (parts.ordering ? 1 : 0) + (parts.policy ? 1 : 0) + (parts.selector ? 1 : 0);
  };
  if (made.ok() && count(made.value()) != 1) {
    return Failed("policy '" + named.name +
                  "' made no component or two; expected an ordering, a policy or a selector");
  }
  return made;
}

}  // namespace trainyard
