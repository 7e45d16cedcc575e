// SPDX-License-Identifier: Apache-2.0
// The values of a preset under the options that the user gives, for one of its policies or for
// none, and what its names mean.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/toml.h"
#include "scenario/preset_keys.h"
#include "trainyard/component_entry.h"
#include "trainyard/options.h"
#include "trainyard/status.h"

namespace trainyard::scenario {

// The table of that name; null: there is none. "overhead.models" lies in "overhead".
[[nodiscard]] const io::TomlTable* FindTable(const io::TomlTable& root, std::string_view name);
// An entry of that table, and all of them; null and none where there is no such table.
[[nodiscard]] const io::TomlEntry* FindEntry(const io::TomlTable* root, std::string_view table,
                                             std::string_view key);
[[nodiscard]] std::span<const io::TomlEntry> EntriesIn(const io::TomlTable& root,
                                                       std::string_view table);
// The text of an entry; empty: there is none.
[[nodiscard]] std::string TextIn(const io::TomlTable* table, std::string_view key);
[[nodiscard]] std::vector<std::string_view> NamesIn(const io::TomlTable& table);

// The preset's table of names of that kind: "policies"; and what a name in it stands for. REQUIRES:
// a policy, placement or admission.
[[nodiscard]] std::string_view TableOfNames(ComponentKind kind);
[[nodiscard]] std::string MeaningOf(const io::TomlEntry& name, ComponentKind kind);

// Rules that do not go together.
struct RuleConflict {
  std::string_view table;
  std::string message;  // "what is wrong; what was expected"
};

// The first mistake is kept in status(): an option or a value of an option that the preset does not
// have, a value that its key cannot have.
class PresetValues {
 public:
  // `policy`: its table; null: none. The tables must outlive the values. `given`: the preset's name
  // and the user's options.
  PresetValues(const io::TomlTable& root, const io::TomlTable* policy, const NamedOptions& given);

  [[nodiscard]] const Status& status() const { return status_; }
  [[nodiscard]] std::vector<std::string_view> options() const;

  // The text with "$option" replaced by the option's value.
  [[nodiscard]] std::string Substitute(std::string text) const;

  // Of the policy, else of the preset, else the key's default; empty: there is none. REQUIRES here
  // and below: the key is one of PresetKeys().
  [[nodiscard]] std::string Text(std::string_view table, std::string_view key);
  [[nodiscard]] double Number(std::string_view table, std::string_view key);
  // All values that have a place, put there.
  [[nodiscard]] PresetDraft Draft();

  // The first conflict: a rule that divides time by the clock's length, which is 0; ends that no
  // decision would ever find. None: there is none.
  [[nodiscard]] std::optional<RuleConflict> FindConflict();

  // The catalogue's name for what the user named: from the preset's table, or as it is. An unknown
  // name is an error that lists what is known. REQUIRES: a policy, placement or admission.
  [[nodiscard]] Result<NamedOptions> InCatalogue(ComponentKind kind,
                                                 const NamedOptions& asked) const;

 private:
  struct Option {
    const io::TomlTable* table = nullptr;
    std::string value;
  };
  // If the value is one that the option can have.
  void Set(const std::string& key, Option& option, const std::string& value);
  // None: the key is absent and has no default, or is of a table of a policy that has none.
  [[nodiscard]] std::optional<std::string> ValueOf(const PresetKey& key);
  void PutByModel(const PresetKey& key, PresetDraft& draft);
  // What the entry says, or its key's default where that is wrong.
  [[nodiscard]] std::string Checked(const PresetKey& key, const io::TomlEntry& entry);
  void Fail(Error error);

  const io::TomlTable& root_;
  const io::TomlTable* policy_;
  std::string preset_;
  bool options_given_;
  std::map<std::string, Option> options_;
  Status status_;
};

}  // namespace trainyard::scenario
