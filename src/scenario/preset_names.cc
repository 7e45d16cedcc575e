// SPDX-License-Identifier: Apache-2.0
#include "scenario/preset_names.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "base/catalog_lookup.h"
#include "base/check.h"
#include "base/text.h"
#include "catalog/catalog.h"

namespace trainyard {
namespace {

std::vector<std::string_view> CatalogueNames(ComponentKind kind) {
  std::vector<std::string_view> names;
  for (const ComponentEntry& entry : Catalog(kind)) {
    names.push_back(entry.name);
  }
  return names;
}

// The entry whose name is `name` with a number in place of its '*'.
const TomlEntry* FindPattern(const TomlTable& names, std::string_view name, std::string& number) {
  for (const TomlEntry& entry : names.entries) {
    const std::string_view pattern = entry.key;
    const std::size_t star = pattern.find('*');
    if (star == std::string_view::npos || name.size() < pattern.size()) {
      continue;
    }
    const std::string_view tail = pattern.substr(star + 1);
    const std::string_view middle = name.substr(star, name.size() - star - tail.size());
    if (name.substr(0, star) == pattern.substr(0, star) &&
        name.substr(name.size() - tail.size()) == tail && ToNumber(middle)) {
      number = middle;
      return &entry;
    }
  }
  return nullptr;
}

}  // namespace

std::string_view TableOfNames(ComponentKind kind) {
  return kind == ComponentKind::kPolicy      ? "policies"
         : kind == ComponentKind::kPlacement ? "placements"
                                             : "admissions";
}

Result<NamedOptions> InCatalogue(ComponentKind kind, const TomlTable& root,
                                 const PresetValues& values, const NamedOptions& asked) {
  const TomlTable* const names = FindTable(root, TableOfNames(kind));
  const TomlEntry* entry = names == nullptr ? nullptr : names->Find(asked.name);
  std::string number;  // what stands for the '*' of a name
  if (entry == nullptr && names != nullptr) {
    entry = FindPattern(*names, asked.name, number);
  }
  if (entry == nullptr) {
    std::vector<std::string_view> known = CatalogueNames(kind);
    const auto has = [&known](std::string_view name) {
      return std::find(known.begin(), known.end(), name) != known.end();
    };
    if (has(asked.name)) {
      return asked;
    }
    for (std::size_t i = 0; names != nullptr && i < names->entries.size(); ++i) {
      if (const std::string_view own = names->entries[i].key; !has(own)) {
        known.push_back(own);
      }
    }
    return InvalidArgument(UnknownName(NameOf(kind), asked.name, known));
  }
  const TomlTable* const table = entry->value.table();
  const TomlEntry* const text = table == nullptr ? entry : table->Find(NameOf(kind));
  CHECK(text != nullptr);
  Result<NamedOptions> meaning = ParseNamedOptions(
      ReplaceAll(values.Substitute(text->value.AsText().value_or("")), "$*", number));
  if (meaning.ok()) {  // the user's options come last and win
    NamedOptions named = std::move(meaning).value();
    named.values.insert(named.values.end(), asked.values.begin(), asked.values.end());
    return named;
  }
  return meaning;
}

Status CheckCatalogueName(ComponentKind kind, const NamedOptions& named) {
  const auto found = LookUp(Catalog(kind), named, NameOf(kind));
  return found.ok() ? Status() : Status(found.error());
}

}  // namespace trainyard
