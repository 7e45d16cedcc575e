// SPDX-License-Identifier: Apache-2.0
#include "scenario/preset_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/text.h"
#include "base/try.h"
#include "catalog/catalog.h"

namespace trainyard::scenario {
namespace {

constexpr double kMicrosecond = 1e-6;

std::string FallbackOf(const PresetKey& key) {
  return key.kind == PresetKey::Kind::kFlag ? (key.fallback == "true" ? "1" : "0")
                                            : std::string(key.fallback);
}

// The entry whose name is `name` with a number in place of its '*'.
const io::TomlEntry* FindPattern(const io::TomlTable& names, std::string_view name,
                                 std::string& number) {
  for (const io::TomlEntry& entry : names.entries) {
    const std::string_view pattern = entry.key;
    const std::size_t star = pattern.find('*');
    if (star == std::string_view::npos || name.size() < pattern.size()) {
      continue;
    }
    const std::string_view tail = pattern.substr(star + 1);
    const std::string_view middle = name.substr(star, name.size() - star - tail.size());
    if (name.substr(0, star) == pattern.substr(0, star) &&
        name.substr(name.size() - tail.size()) == tail && base::ToNumber(middle)) {
      number = middle;
      return &entry;
    }
  }
  return nullptr;
}

}  // namespace

const io::TomlTable* FindTable(const io::TomlTable& root, std::string_view name) {
  const io::TomlTable* table = &root;
  for (const std::string_view part : base::Split(name, ".")) {
    const io::TomlEntry* const entry = table->Find(part);
    table = entry == nullptr ? nullptr : entry->value.table();
    if (table == nullptr) {
      return nullptr;
    }
  }
  return table;
}

const io::TomlEntry* FindEntry(const io::TomlTable* root, std::string_view table,
                               std::string_view key) {
  const io::TomlTable* const inner = root == nullptr ? nullptr : FindTable(*root, table);
  return inner == nullptr ? nullptr : inner->Find(key);
}

std::span<const io::TomlEntry> EntriesIn(const io::TomlTable& root, std::string_view table) {
  const io::TomlTable* const inner = FindTable(root, table);
  return inner == nullptr ? std::span<const io::TomlEntry>() : inner->entries;
}

std::string TextIn(const io::TomlTable* table, std::string_view key) {
  const io::TomlEntry* const entry = table == nullptr ? nullptr : table->Find(key);
  return entry == nullptr ? std::string() : entry->value.AsText().value_or("");
}

std::vector<std::string_view> NamesIn(const io::TomlTable& table) {
  std::vector<std::string_view> names;
  for (const io::TomlEntry& entry : table.entries) {
    names.push_back(entry.key);
  }
  return names;
}

std::string_view TableOfNames(ComponentKind kind) {
  return kind == ComponentKind::kPolicy      ? "policies"
         : kind == ComponentKind::kPlacement ? "placements"
                                             : "admissions";
}

std::string MeaningOf(const io::TomlEntry& name, ComponentKind kind) {
  const io::TomlTable* const table = name.value.table();
  return table == nullptr ? name.value.AsText().value_or("") : TextIn(table, base::NameOf(kind));
}

PresetValues::PresetValues(const io::TomlTable& root, const io::TomlTable* policy,
                           const NamedOptions& given)
    : root_(root), policy_(policy), preset_(given.name), options_given_(!given.values.empty()) {
  for (const io::TomlEntry& option : EntriesIn(root, "options")) {
    // Without a default: a file that is being checked; this is found there.
    if (const io::TomlTable* const table = option.value.table();
        table->Find("default") != nullptr) {
      options_[option.key] = {.table = table, .value = TextIn(table, "default")};
    }
  }
  for (const auto& [key, value] : given.values) {
    if (const auto option = options_.find(key); option != options_.end()) {
      Set(key, option->second, value);
    } else {
      Fail(InvalidArgument(
          fmt::format("preset '{}': {}", preset_, base::UnknownName("option", key, options()))));
    }
  }
  for (auto& [key, option] : options_) {
    if (const io::TomlEntry* const meaning = FindEntry(option.table, "values", option.value)) {
      option.value = meaning->value.AsText().value_or("");
    }
  }
}

void PresetValues::Set(const std::string& key, Option& option, const std::string& value) {
  if (const io::TomlTable* const named = FindTable(*option.table, "values")) {
    if (named->Find(value) == nullptr) {
      const std::string what = "value of option '" + key + "'";
      return Fail(InvalidArgument(fmt::format("preset '{}': {}", preset_,
                                              base::UnknownName(what, value, NamesIn(*named)))));
    }
  } else if (const std::optional<double> number = base::ToNumber(value);
             TextIn(option.table, "kind") != "text" && (!number || !(*number > 0))) {
    return Fail(InvalidArgument(fmt::format(
        "preset '{}': option '{}' is '{}'; expected a number > 0", preset_, key, value)));
  }
  option.value = value;
}

std::vector<std::string_view> PresetValues::options() const {
  std::vector<std::string_view> names;
  for (const auto& [key, option] : options_) {
    names.push_back(key);
  }
  return names;
}

std::string PresetValues::Substitute(std::string text) const {
  // From the last to the first, so that an option whose name begins with another's comes before it.
  for (auto option = options_.rbegin(); option != options_.rend(); ++option) {
    text = base::ReplaceAll(std::move(text), "$" + option->first, option->second.value);
  }
  return text;
}

std::optional<std::string> PresetValues::ValueOf(const PresetKey& key) {
  constexpr std::string_view kOfPolicy = "policies.*.";
  const io::TomlEntry* entry = FindEntry(policy_, key.table, key.key);
  if (key.table.starts_with(kOfPolicy)) {
    const std::string_view table = key.table.substr(kOfPolicy.size());
    if (policy_ == nullptr || FindTable(*policy_, table) == nullptr) {
      return std::nullopt;
    }
    entry = FindEntry(policy_, table, key.key);
  } else if (entry == nullptr) {
    entry = FindEntry(&root_, key.table, key.key);
  }
  if (entry != nullptr) {
    return Checked(key, *entry);
  }
  return key.fallback.empty() ? std::nullopt : std::optional(FallbackOf(key));
}

std::string PresetValues::Text(std::string_view table, std::string_view key) {
  return ValueOf(PresetKeyOf(table, key)).value_or("");
}

double PresetValues::Number(std::string_view table, std::string_view key) {
  return ProductOf(Text(table, key)).value_or(0);
}

PresetDraft PresetValues::Draft() {
  PresetDraft draft;
  for (const PresetKey& key : PresetKeys()) {
    if (key.put == nullptr) {
      continue;
    }
    if ((key.table.starts_with("overhead.") || key.table.starts_with("trainings.")) &&
        key.table.ends_with(".*")) {
      PutByModel(key, draft);
    } else if (const std::optional<std::string> text = ValueOf(key)) {
      key.put(key, *text, draft);
    }
  }
  return draft;
}

// Of a key in a table of each model.
void PresetValues::PutByModel(const PresetKey& key, PresetDraft& draft) {
  for (const io::TomlEntry& model : EntriesIn(root_, key.table.substr(0, key.table.size() - 2))) {
    const io::TomlTable& costs = *model.value.table();
    draft.model = model.key;
    if (key.key != "*") {
      const io::TomlEntry* const entry = costs.Find(key.key);
      key.put(key, entry == nullptr ? FallbackOf(key) : Checked(key, *entry), draft);
      continue;
    }
    for (const io::TomlEntry& entry : costs.entries) {
      draft.gpus = static_cast<int>(base::ToNumber(entry.key).value_or(0));
      key.put(key, Checked(key, entry), draft);
    }
  }
}

std::string PresetValues::Checked(const PresetKey& key, const io::TomlEntry& entry) {
  std::string text = Substitute(entry.value.AsText().value_or(""));
  const std::optional<std::string> expected = WhatIsExpected(key, text);
  if (!expected) {
    return text;
  }
  const std::string message = fmt::format("preset '{}': [{}] {} is '{}'; expected {}", preset_,
                                          key.table, entry.key, text, *expected);
  Fail(options_given_ ? InvalidArgument(message) : BadInput(message));
  return FallbackOf(key);
}

void PresetValues::Fail(Error error) {
  if (status_.ok()) {
    status_ = std::move(error);
  }
}

std::optional<RuleConflict> PresetValues::FindConflict() {
  if (Text("end", "found_late") == "1" &&
      (Text("clock", "mode") != "arrivals" || Text("ledger", "every_instant") != "1")) {
    return RuleConflict{
        .table = "end",
        .message =
            "[end] found_late leaves ends to decisions that come without "
            "them; expected [clock] mode = \"arrivals\" and [ledger] every_instant"};
  }
  if (Number("clock", "length") >= kMicrosecond) {
    return std::nullopt;
  }
  for (const auto& [table, key, needs] :
       {std::tuple{"clock", "mode", Text("clock", "mode") != "every_event"},
        std::tuple{"end", "finish", Text("end", "finish") == "round_end"},
        std::tuple{"ledger", "quantum", Text("ledger", "quantum") == "iteration_per_round"}}) {
    if (needs) {
      return RuleConflict{.table = table,
                          .message = fmt::format("[{}] {} '{}' needs a length; expected [clock] "
                                                 "length of a microsecond or more",
                                                 table, key, Text(table, key))};
    }
  }
  return std::nullopt;
}

Result<NamedOptions> PresetValues::InCatalogue(ComponentKind kind,
                                               const NamedOptions& asked) const {
  const io::TomlTable* const names = FindTable(root_, TableOfNames(kind));
  const io::TomlEntry* entry = names == nullptr ? nullptr : names->Find(asked.name);
  std::string number;  // what stands for the '*' of a name
  if (entry == nullptr && names != nullptr) {
    entry = FindPattern(*names, asked.name, number);
  }
  if (entry == nullptr) {
    std::vector<std::string_view> known;
    for (const ComponentEntry& component : catalog::Catalog(kind)) {
      known.push_back(component.name);
    }
    const auto has = [&known](std::string_view name) {
      return std::find(known.begin(), known.end(), name) != known.end();
    };
    if (has(asked.name)) {
      return asked;
    }
    for (const io::TomlEntry& own : EntriesIn(root_, TableOfNames(kind))) {
      if (!has(own.key)) {
        known.push_back(own.key);
      }
    }
    return InvalidArgument(base::UnknownName(base::NameOf(kind), asked.name, known));
  }
  ASSIGN_OR_RETURN(NamedOptions meaning, ParseNamedOptions(base::ReplaceAll(
                                             Substitute(MeaningOf(*entry, kind)), "$*", number)));
  // The user's options come last and win.
  meaning.values.insert(meaning.values.end(), asked.values.begin(), asked.values.end());
  return meaning;
}

}  // namespace trainyard::scenario
