// SPDX-License-Identifier: Apache-2.0
#include "io/toml.h"

#include <fmt/core.h>

// toml++ 3.3 asserts, and in release builds assumes, what a malformed file can violate ("[[["; its
// pull request 301). Without that it goes on to report an ordinary error.
#undef NDEBUG
#define TOML_ASSERT(condition) static_assert(true)
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

#include "base/text.h"

namespace trainyard::io {
namespace {

int LineOf(const toml::node& node) { return static_cast<int>(node.source().begin.line); }

TomlTable Converted(const toml::table& table);

TomlValue Converted(const toml::node& node) {  // NOLINT(misc-no-recursion)
  TomlValue value{.line = LineOf(node), .value = std::string()};
  if (const toml::table* const table = node.as_table()) {
    value.value = Converted(*table);
  } else if (const toml::array* const list = node.as_array()) {
    std::vector<TomlValue> values;
    for (const toml::node& item : *list) {
      values.push_back(Converted(item));
    }
    value.value = std::move(values);
  } else if (const auto text = node.value_exact<std::string>()) {
    value.value = *text;
  } else if (const auto whole = node.value_exact<std::int64_t>()) {
    value.value = *whole;
  } else if (const auto number = node.value_exact<double>()) {
    value.value = *number;
  } else if (const auto flag = node.value_exact<bool>()) {
    value.value = *flag;
  } else {
    std::ostringstream shown;
    node.visit([&shown](const auto& date) { shown << date; });
    value.value = shown.str();
  }
  return value;
}

// toml++ keeps keys in alphabetical order.
TomlTable Converted(const toml::table& table) {  // NOLINT(misc-no-recursion)
  std::vector<std::pair<std::pair<toml::source_index, toml::source_index>, TomlEntry>> entries;
  for (const auto& [key, node] : table) {
    const toml::source_position at = key.source().begin;
    entries.push_back({{at.line, at.column},
                       TomlEntry{.key = std::string(key.str()),
                                 .line = static_cast<int>(at.line),
                                 .value = Converted(node)}});
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  TomlTable converted{.line = LineOf(table), .entries = {}};
  for (auto& [position, entry] : entries) {
    converted.entries.push_back(std::move(entry));
  }
  return converted;
}

std::string ShownValue(const TomlValue& value) {
  if (const auto* const text = std::get_if<std::string>(&value.value)) {
    return fmt::format("'{}'", text->substr(0, 60));
  }
  if (value.table() != nullptr || value.list() != nullptr) {
    return value.table() != nullptr ? "a table" : "a list";
  }
  if (const bool* const flag = std::get_if<bool>(&value.value)) {
    return *flag ? "true" : "false";
  }
  return *value.AsText();
}

}  // namespace

const TomlEntry* TomlTable::Find(std::string_view key) const {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [key](const TomlEntry& entry) { return entry.key == key; });
  return found == entries.end() ? nullptr : &*found;
}

std::optional<std::string> TomlValue::AsText() const {
  if (const auto* const text = std::get_if<std::string>(&value)) {
    return *text;
  }
  if (const auto* const whole = std::get_if<std::int64_t>(&value)) {
    return std::to_string(*whole);
  }
  if (const auto* const number = std::get_if<double>(&value)) {
    return fmt::format("{}", *number);
  }
  if (const auto* const flag = std::get_if<bool>(&value)) {
    return *flag ? "1" : "0";
  }
  return std::nullopt;
}

Result<TomlTable> ParseToml(const std::string& path, std::string_view text) {
  const toml::parse_result parsed = toml::parse(text, std::string_view(path));
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return BadInput(
        fmt::format("{}:{}: not TOML: {}", path, error.source().begin.line, error.description()));
  }
  return Converted(parsed.table());
}

Error TomlSection::BadAt(int line, std::string_view what) const {
  return BadInput(fmt::format("{}:{}: {}", path_, line, what));
}

Error TomlSection::Bad(std::string_view what) const {
  return BadAt(table_.line, fmt::format("{}: {}", name_, what));
}

Error TomlSection::BadKey(std::string_view key, std::string_view what) const {
  const TomlEntry* const entry = table_.Find(key);
  return entry == nullptr ? Bad(what) : BadAt(entry->line, what);
}

Status TomlSection::CheckKeys(std::span<const std::string_view> known) const {
  for (const TomlEntry& entry : table_.entries) {
    if (std::find(known.begin(), known.end(), entry.key) == known.end()) {
      return BadAt(entry.line, base::UnknownName(fmt::format("{} key", name_), entry.key, known));
    }
  }
  return {};
}

// Sets the target to what `convert` makes of the value; nothing: the value is of the wrong kind.
template <typename Convert, typename Target>
Status TomlSection::Read(std::string_view key, std::string_view expected, Convert convert,
                         Target& target) const {
  const TomlEntry* const entry = table_.Find(key);
  if (entry == nullptr) {
    return {};
  }
  auto value = convert(entry->value);
  if (!value) {
    return BadAt(entry->line,
                 fmt::format("'{}' is {}; expected {}", key, ShownValue(entry->value), expected));
  }
  target = *std::move(value);
  return {};
}

Status TomlSection::ReadText(std::string_view key, std::string& text) const {
  const auto convert = [](const TomlValue& value) {
    const auto* const as_text = std::get_if<std::string>(&value.value);
    return as_text != nullptr && !as_text->empty() ? std::optional(*as_text) : std::nullopt;
  };
  return Read(key, "a text", convert, text);
}

Status TomlSection::ReadScalar(std::string_view key, std::string& text) const {
  const auto convert = [](const TomlValue& value) {
    std::optional<std::string> as_text = value.AsText();
    return as_text && !as_text->empty() ? as_text : std::nullopt;
  };
  return Read(key, "a number or a text", convert, text);
}

Status TomlSection::ReadFlag(std::string_view key, bool& flag) const {
  const auto convert = [](const TomlValue& value) {
    const bool* const as_flag = std::get_if<bool>(&value.value);
    return as_flag != nullptr ? std::optional(*as_flag) : std::nullopt;
  };
  return Read(key, "true or false", convert, flag);
}

Status TomlSection::ReadNumber(std::string_view key, Bounds bounds,
                               std::optional<double>& number) const {
  const auto convert = [bounds](const TomlValue& value) {
    const auto* const whole = std::get_if<std::int64_t>(&value.value);
    const auto* const real = std::get_if<double>(&value.value);
    const double read = whole != nullptr  ? static_cast<double>(*whole)
                        : real != nullptr ? *real
                                          : std::nan("");
    return read >= bounds.least && read <= bounds.most ? std::optional(read) : std::nullopt;
  };
  return Read(key, fmt::format("a number from {} to {:.0f}", bounds.least, bounds.most), convert,
              number);
}

Status TomlSection::ReadInteger(std::string_view key, Bounds bounds, std::int64_t& number) const {
  const auto convert = [bounds](const TomlValue& value) {
    const auto* const whole = std::get_if<std::int64_t>(&value.value);
    const bool fits = whole != nullptr && static_cast<double>(*whole) >= bounds.least &&
                      static_cast<double>(*whole) <= bounds.most;
    return fits ? std::optional(*whole) : std::nullopt;
  };
  return Read(key, fmt::format("an integer from {} to {}", bounds.least, bounds.most), convert,
              number);
}

Result<std::vector<const TomlTable*>> TomlSection::Tables(std::string_view key) const {
  std::vector<const TomlTable*> tables;
  const TomlEntry* const entry = table_.Find(key);
  if (entry == nullptr) {
    return tables;
  }
  const Error no_list = BadAt(
      entry->line, fmt::format("'{}' is {}; expected [[{}]]", key, ShownValue(entry->value), key));
  if (entry->value.list() == nullptr) {
    return no_list;
  }
  for (const TomlValue& item : *entry->value.list()) {
    if (item.table() == nullptr) {
      return no_list;
    }
    tables.push_back(item.table());
  }
  return tables;
}

}  // namespace trainyard::io
