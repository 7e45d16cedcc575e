// SPDX-License-Identifier: Apache-2.0
// The keys of a preset file, each with its type, default and bounds, and where its value goes.
// Files are checked against this list, values are taken by it, and a test compares it with
// docs/presets.md.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/toml.h"
#include "profile/overhead_model.h"
#include "scenario/preset.h"

namespace trainyard::scenario {

// A preset while values are put into it.
struct PresetDraft {
  ResolvedPreset preset{};
  bool by_formula = false;  // [overhead] model; the other one of the next two is not used
  profile::OverheadFormula formula{};
  profile::OverheadTable table{};
  std::optional<Duration> restart{};  // [overhead] restart: goes before that of the table
  // Names that the author of the file has chosen, where the value lies below such: the model in
  // [overhead.models.bert], also the GPUs of a key in [overhead.by_gpus.bert].
  std::string model{};
  int gpus = 0;
};

struct PresetKey {
  enum class Kind : unsigned char {
    kFlag,     // true or false, 1 or 0
    kNumber,   // or a product of numbers
    kSeconds,  // likewise
    kAnchor,   // seconds, or "arrival"
    kChoice,   // one of `choices`
    kRows,     // "FIRST-LAST" or "all"
    kText,
    kScalar,  // a text, a number or a flag
  };
  // Of the table, with '.' between its parts and '*' for a part that the author of the file
  // chooses: "clock", "policies.*.walk"; empty: the top level.
  std::string_view table;
  std::string_view key;  // "*": the author chooses it
  Kind kind = Kind::kText;
  std::string_view fallback{};  // the value where the key is absent; empty: none
  double least = 0;             // bounds of numbers and seconds, both included
  double most = 0;
  std::string_view choices{};  // separated by '|', in the order of their enumerators
  // Puts a value that the key can have where it belongs. Null: it is of the file, its options or
  // its names, and read where these are.
  void (*put)(const PresetKey& key, const std::string& text, PresetDraft& draft) = nullptr;
};

// Table by table, as docs/presets.md lists them.
[[nodiscard]] std::span<const PresetKey> PresetKeys();
// REQUIRES: there is such a key; `table`: as in PresetKey.
[[nodiscard]] const PresetKey& PresetKeyOf(std::string_view table, std::string_view key);
[[nodiscard]] std::vector<std::string_view> ChoicesOf(const PresetKey& key);

// Type and bounds in the words of docs/presets.md: "seconds", "0 to 1e9".
[[nodiscard]] std::string_view KindName(PresetKey::Kind kind);
[[nodiscard]] std::string BoundsText(const PresetKey& key);

// A number or a product of numbers: "20*60" is 1200. Nothing: it is neither.
[[nodiscard]] std::optional<double> ProductOf(std::string_view text);

// What is expected instead, if the key cannot have this value. `text`: the value with options
// replaced.
[[nodiscard]] std::optional<std::string> WhatIsExpected(const PresetKey& key,
                                                        const std::string& text);

// A value of a file: what is known of its key, the table that it stands in ("[clock]",
// "[policies.mine] clock"), and the entry.
struct PresetValue {
  const PresetKey& key;
  std::string table;
  const io::TomlEntry& entry;
};
// Calls `look` with each value of the file, in its order, up to the first failure. Errors beside
// those of `look`: an unknown key or table, a value in place of a table, a table in place of a
// value. `file` names it in messages.
[[nodiscard]] Status ForEachPresetValue(const std::string& file, const io::TomlTable& root,
                                        const std::function<Status(const PresetValue&)>& look);

}  // namespace trainyard::scenario
