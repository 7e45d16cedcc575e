// SPDX-License-Identifier: Apache-2.0
#include "scenario/preset_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/text.h"

namespace trainyard {
namespace {

constexpr double kMicrosecond = 1e-6;

std::vector<std::string_view> NamesIn(const TomlTable& table) {
  std::vector<std::string_view> names;
  for (const TomlEntry& entry : table.entries) {
    names.push_back(entry.key);
  }
  return names;
}

std::string FallbackOf(const PresetKey& key) {
  return key.kind == PresetKey::Kind::kFlag ? (key.fallback == "true" ? "1" : "0")
                                            : std::string(key.fallback);
}

const TomlEntry* FindEntry(const TomlTable& root, std::string_view table, std::string_view key) {
  const TomlTable* const inner = FindTable(root, table);
  return inner == nullptr ? nullptr : inner->Find(key);
}

}  // namespace

const TomlTable* FindTable(const TomlTable& root, std::string_view name) {
  const TomlTable* table = &root;
  for (const std::string_view part : Split(name, ".")) {
    const TomlEntry* const entry = table->Find(part);
    table = entry == nullptr ? nullptr : entry->value.table();
    if (table == nullptr) {
      return nullptr;
    }
  }
  return table;
}

PresetValues::PresetValues(const TomlTable& root, const TomlTable* policy,
                           const NamedOptions& given)
    : root_(root), policy_(policy), preset_(given.name), options_given_(!given.values.empty()) {
  if (const TomlTable* const options = FindTable(root, "options")) {
    for (const TomlEntry& option : options->entries) {
      Take(option);
    }
  }
  for (const auto& [key, value] : given.values) {
    if (options_.find(key) == options_.end()) {
      Fail(InvalidArgument(
          fmt::format("preset '{}': {}", preset_, UnknownName("option", key, options()))));
    } else {
      Set(key, value);
    }
  }
  for (const auto& [key, values] : values_) {
    if (const TomlEntry* const meaning = values->Find(options_[key])) {
      options_[key] = meaning->value.AsText().value_or("");
    }
  }
}

void PresetValues::Take(const TomlEntry& option) {
  const TomlTable* const table = option.value.table();
  const TomlEntry* const fallback = table == nullptr ? nullptr : table->Find("default");
  if (fallback == nullptr) {
    return;  // a file that is being checked: this is found there
  }
  options_[option.key] = fallback->value.AsText().value_or("");
  if (const TomlEntry* const kind = table->Find("kind");
      kind != nullptr && kind->value.AsText() == "text") {
    texts_.insert(option.key);
  }
  if (const TomlTable* const values = FindTable(*table, "values")) {
    values_[option.key] = values;
  }
}

void PresetValues::Set(const std::string& key, const std::string& value) {
  if (const auto named = values_.find(key); named != values_.end()) {
    if (named->second->Find(value) == nullptr) {
      const std::string what = "value of option '" + key + "'";
      return Fail(InvalidArgument(fmt::format("preset '{}': {}", preset_,
                                              UnknownName(what, value, NamesIn(*named->second)))));
    }
  } else if (const std::optional<double> number = ToNumber(value);
             texts_.count(key) == 0 && (!number || !(*number > 0))) {
    return Fail(InvalidArgument(fmt::format(
        "preset '{}': option '{}' is '{}'; expected a number > 0", preset_, key, value)));
  }
  options_[key] = value;
}

std::vector<std::string_view> PresetValues::options() const {
  std::vector<std::string_view> names;
  for (const auto& [key, value] : options_) {
    names.push_back(key);
  }
  return names;
}

std::string PresetValues::Substitute(std::string text) const {
  // From the last to the first, so that an option whose name begins with another's comes before it.
  for (auto option = options_.rbegin(); option != options_.rend(); ++option) {
    text = ReplaceAll(std::move(text), "$" + option->first, option->second);
  }
  return text;
}

std::optional<std::string> PresetValues::Given(std::string_view table, std::string_view key) {
  const TomlEntry* entry = policy_ == nullptr ? nullptr : FindEntry(*policy_, table, key);
  entry = entry == nullptr ? FindEntry(root_, table, key) : entry;
  return entry == nullptr ? std::nullopt : std::optional(Checked(PresetKeyOf(table, key), *entry));
}

std::string PresetValues::Text(std::string_view table, std::string_view key) {
  std::optional<std::string> given = Given(table, key);
  return given ? *std::move(given) : FallbackOf(PresetKeyOf(table, key));
}

double PresetValues::Number(std::string_view table, std::string_view key) {
  return ProductOf(Text(table, key)).value_or(0);
}

bool PresetValues::Flag(std::string_view table, std::string_view key) {
  return Text(table, key) == "1";
}

std::size_t PresetValues::ChoiceAt(std::string_view table, std::string_view key) {
  const std::string text = Text(table, key);
  const std::vector<std::string_view> choices = ChoicesOf(PresetKeyOf(table, key));
  const auto found = std::find(choices.begin(), choices.end(), text);
  CHECK(found != choices.end());
  return static_cast<std::size_t>(found - choices.begin());
}

double PresetValues::NumberOf(const PresetKey& key, const TomlTable& table, std::string_view name) {
  const TomlEntry* const entry = table.Find(name);
  return ProductOf(entry == nullptr ? FallbackOf(key) : Checked(key, *entry)).value_or(0);
}

std::string PresetValues::Checked(const PresetKey& key, const TomlEntry& entry) {
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

std::optional<RuleConflict> FindConflict(PresetValues& values) {
  if (values.Flag("end", "found_late") &&
      (values.Text("clock", "mode") != "arrivals" || !values.Flag("ledger", "every_instant"))) {
    return RuleConflict{
        .table = "end",
        .message =
            "[end] found_late leaves ends to decisions that come without "
            "them; expected [clock] mode = \"arrivals\" and [ledger] every_instant"};
  }
  if (values.Number("clock", "length") >= kMicrosecond) {
    return std::nullopt;
  }
  for (const auto& [table, key, needs] :
       {std::tuple{"clock", "mode", values.Text("clock", "mode") != "every_event"},
        std::tuple{"end", "finish", values.Text("end", "finish") == "round_end"},
        std::tuple{"ledger", "quantum",
                   values.Text("ledger", "quantum") == "iteration_per_round"}}) {
    if (needs) {
      return RuleConflict{.table = table,
                          .message = fmt::format("[{}] {} '{}' needs a length; expected [clock] "
                                                 "length of a microsecond or more",
                                                 table, key, values.Text(table, key))};
    }
  }
  return std::nullopt;
}

}  // namespace trainyard
