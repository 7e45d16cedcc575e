// SPDX-License-Identifier: Apache-2.0
// TOML files as tables whose values know their lines, and readers that check what they take. The
// parser's own header stays in toml.cc.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "trainyard/status.h"

namespace trainyard::io {

// The text as a value in a file, in quotes.
[[nodiscard]] std::string TomlString(std::string_view text);

struct TomlEntry;
struct TomlTable {
  int line = 0;
  std::vector<TomlEntry> entries;  // in the order of the file; keys are unique

  [[nodiscard]] const TomlEntry* Find(std::string_view key) const;
};

struct TomlValue {
  int line = 0;
  // Dates and times are texts as they stand in the file.
  std::variant<std::string, std::int64_t, double, bool, std::vector<TomlValue>, TomlTable> value;

  // Null where it is something else.
  [[nodiscard]] const TomlTable* table() const { return std::get_if<TomlTable>(&value); }
  [[nodiscard]] const std::vector<TomlValue>* list() const {
    return std::get_if<std::vector<TomlValue>>(&value);
  }
  // A text as it is, a number in its shortest form, true as "1", false as "0"; none for a list or a
  // table.
  [[nodiscard]] std::optional<std::string> AsText() const;
};

struct TomlEntry {
  std::string key;
  int line = 0;
  TomlValue value;
};

// Errors: "path:line: not TOML: ..." (kBadInput).
[[nodiscard]] Result<TomlTable> ParseToml(const std::string& path, std::string_view text);

// One table of a file, whose values are taken by key. Errors are "path:line: what; expected".
class TomlSection {
 public:
  // `name` as it stands in the file, such as "[[nodes]]". The table must outlive the section.
  TomlSection(std::string path, std::string name, const TomlTable& table)
      : path_(std::move(path)), name_(std::move(name)), table_(table) {}

  [[nodiscard]] const TomlTable& table() const { return table_; }
  [[nodiscard]] bool Has(std::string_view key) const { return table_.Find(key) != nullptr; }
  [[nodiscard]] Error BadAt(int line, std::string_view what) const;
  // At the table's own line, with its name.
  [[nodiscard]] Error Bad(std::string_view what) const;
  // At the key's line, or the table's where it is absent.
  [[nodiscard]] Error BadKey(std::string_view key, std::string_view what) const;

  // Every key of the table must be one of these.
  [[nodiscard]] Status CheckKeys(std::span<const std::string_view> known) const;
  [[nodiscard]] Status CheckKeys(std::initializer_list<std::string_view> known) const {
    return CheckKeys(std::span(known.begin(), known.size()));
  }

  // The readers leave the target as it is where the key is absent.
  [[nodiscard]] Status ReadText(std::string_view key, std::string& text) const;
  // A text, a number or a truth value, as in TomlValue::AsText.
  [[nodiscard]] Status ReadScalar(std::string_view key, std::string& text) const;
  [[nodiscard]] Status ReadFlag(std::string_view key, bool& flag) const;
  // A list of texts, which may be empty; `example`: one of them, for the message.
  [[nodiscard]] Status ReadTexts(std::string_view key, std::string_view example,
                                 std::vector<std::string>& texts) const;
  // Numbers within bounds, both included.
  struct Bounds {
    double least = 0;
    double most = 0;
  };
  [[nodiscard]] Status ReadNumber(std::string_view key, Bounds bounds,
                                  std::optional<double>& number) const;
  [[nodiscard]] Status ReadInteger(std::string_view key, Bounds bounds, std::int64_t& number) const;
  // The tables of [[key]]; pointers into the table.
  [[nodiscard]] Result<std::vector<const TomlTable*>> Tables(std::string_view key) const;

 private:
  template <typename Convert, typename Target>
  [[nodiscard]] Status Read(std::string_view key, std::string_view expected, Convert convert,
                            Target& target) const;

  std::string path_;
  std::string name_;
  const TomlTable& table_;
};

// The first failure of several readers, all of which have been called.
[[nodiscard]] inline Status FirstFailure(std::initializer_list<Status> results) {
  for (const Status& result : results) {
    if (!result.ok()) {
      return result;
    }
  }
  return {};
}

}  // namespace trainyard::io
