// SPDX-License-Identifier: Apache-2.0
// The values of a preset under the options that the user gives, for one of its policies or for
// none.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "io/toml.h"
#include "scenario/preset_keys.h"
#include "trainyard/options.h"
#include "trainyard/status.h"

namespace trainyard {

// The table of that name; null: there is none. "overhead.models" lies in "overhead".
[[nodiscard]] const TomlTable* FindTable(const TomlTable& root, std::string_view name);

// The first mistake is kept in status(): an option or a value of an option that the preset does not
// have, a value that its key cannot have.
class PresetValues {
 public:
  // `policy`: its table; null: none. The tables must outlive the values. `given`: the preset's name
  // and the user's options.
  PresetValues(const TomlTable& root, const TomlTable* policy, const NamedOptions& given);

  [[nodiscard]] const Status& status() const { return status_; }
  [[nodiscard]] std::vector<std::string_view> options() const;

  // The text with "$option" replaced by the option's value.
  [[nodiscard]] std::string Substitute(std::string text) const;

  // Of the policy, else of the preset; none where the key is absent in both. REQUIRES for all: the
  // key is one of PresetKeys(), of the kind that is read.
  [[nodiscard]] std::optional<std::string> Given(std::string_view table, std::string_view key);
  // As Given; where the key is absent its default.
  [[nodiscard]] std::string Text(std::string_view table, std::string_view key);
  [[nodiscard]] double Number(std::string_view table, std::string_view key);
  [[nodiscard]] bool Flag(std::string_view table, std::string_view key);
  // `values` in the order of the key's choices.
  template <typename Enum, std::size_t size>
  [[nodiscard]] Enum Choice(std::string_view table, std::string_view key,
                            const std::array<Enum, size>& values) {
    const std::size_t at = ChoiceAt(table, key);
    CHECK(ChoicesOf(PresetKeyOf(table, key)).size() == size);
    return values[at];
  }
  // A value that lies in a table with a name of the author's, such as [overhead.models.bert].
  [[nodiscard]] double NumberOf(const PresetKey& key, const TomlTable& table,
                                std::string_view name);

 private:
  void Take(const TomlEntry& option);
  // A known option, if the value is one that it can have.
  void Set(const std::string& key, const std::string& value);
  [[nodiscard]] std::size_t ChoiceAt(std::string_view table, std::string_view key);
  // What the entry says, or its key's default where that is wrong.
  [[nodiscard]] std::string Checked(const PresetKey& key, const TomlEntry& entry);
  void Fail(Error error);

  const TomlTable& root_;
  const TomlTable* policy_;
  std::string preset_;
  bool options_given_;
  std::map<std::string, std::string, std::less<>> options_;
  std::set<std::string> texts_;                     // options that are no numbers
  std::map<std::string, const TomlTable*> values_;  // of options: what their names stand for
  Status status_;
};

// Rules that do not go together.
struct RuleConflict {
  std::string_view table;
  std::string message;  // "what is wrong; what was expected"
};
// The first conflict: a rule that divides time by the clock's length, which is 0; ends that no
// decision would ever find. None: there is none.
[[nodiscard]] std::optional<RuleConflict> FindConflict(PresetValues& values);

}  // namespace trainyard
