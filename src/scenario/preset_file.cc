// SPDX-License-Identifier: Apache-2.0
#include "scenario/preset_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <utility>

#include "base/catalog_lookup.h"
#include "base/text.h"
#include "base/try.h"
#include "io/file.h"
#include "io/sha256.h"
#include "scenario/preset_keys.h"
#include "scenario/preset_names.h"
#include "scenario/preset_values.h"

// NOLINTBEGIN(readability-identifier-naming): symbols of the embedded files
extern "C" {
extern const char preset_blox_begin;
extern const char preset_blox_end;
extern const char preset_chronus_begin;
extern const char preset_chronus_end;
extern const char preset_elasticflow_begin;
extern const char preset_elasticflow_end;
extern const char preset_muri_begin;
extern const char preset_muri_end;
extern const char preset_sound_begin;
extern const char preset_sound_end;
extern const char preset_synergy_begin;
extern const char preset_synergy_end;
extern const char preset_tiresias_begin;
extern const char preset_tiresias_end;
extern const char preset_torchloader_begin;
extern const char preset_torchloader_end;
}
// NOLINTEND(readability-identifier-naming)

namespace trainyard {
namespace {

struct EmbeddedPreset {
  std::string_view name;
  const char* begin;
  const char* end;

  [[nodiscard]] std::string_view text() const {
    return {begin, static_cast<std::size_t>(end - begin)};
  }
};
const std::array kPresets{
    EmbeddedPreset{"blox", &preset_blox_begin, &preset_blox_end},
    EmbeddedPreset{"chronus", &preset_chronus_begin, &preset_chronus_end},
    EmbeddedPreset{"elasticflow", &preset_elasticflow_begin, &preset_elasticflow_end},
    EmbeddedPreset{"muri", &preset_muri_begin, &preset_muri_end},
    EmbeddedPreset{"sound", &preset_sound_begin, &preset_sound_end},
    EmbeddedPreset{"synergy", &preset_synergy_begin, &preset_synergy_end},
    EmbeddedPreset{"tiresias", &preset_tiresias_begin, &preset_tiresias_end},
    EmbeddedPreset{"torchloader", &preset_torchloader_begin, &preset_torchloader_end},
};
constexpr std::array<std::string_view, 8> kNames{"blox",  "chronus", "elasticflow", "muri",
                                                 "sound", "synergy", "tiresias",    "torchloader"};
constexpr std::string_view kEnding = ".toml";

bool IsBuiltIn(std::string_view name) {
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

// The keys of `own` take the place of those of `base`, table by table.
TomlTable Merged(TomlTable base, const TomlTable& own) {  // NOLINT(misc-no-recursion)
  for (const TomlEntry& entry : own.entries) {
    const auto same =
        std::find_if(base.entries.begin(), base.entries.end(),
                     [&entry](const TomlEntry& other) { return other.key == entry.key; });
    if (same == base.entries.end()) {
      base.entries.push_back(entry);
    } else if (same->value.table() != nullptr && entry.value.table() != nullptr) {
      same->value.value = Merged(*same->value.table(), *entry.value.table());
    } else {
      *same = entry;
    }
  }
  return base;
}

// ------------------------------------------------------------------------------- a user's own file

// Everything that can be wrong with a file by itself and on top of its base, with the options at
// their defaults.
class FileCheck {
 public:
  FileCheck(const std::string& file, const TomlTable& own, const TomlTable& merged)
      : file_(file),
        own_(own),
        merged_(merged),
        values_(merged, nullptr, {.name = file, .values = {}}) {}

  [[nodiscard]] Status Check() const {
    for (const auto part : {&FileCheck::CheckOptions, &FileCheck::CheckPolicies}) {
      RETURN_IF_ERROR((this->*part)());
    }
    const Status status = ForEachPresetValue(
        file_, own_, [this](const PresetValue& value) { return CheckValue(value); });
    return status.ok() ? CheckRules() : status;
  }

 private:
  [[nodiscard]] Error At(int line, std::string_view what) const {
    return BadInput(fmt::format("{}:{}: {}", file_, line, what));
  }

  // Calls `check` with each table in the file's own [NAME], and with that on top of the base.
  template <typename Check>
  [[nodiscard]] Status ForEach(std::string_view name, const Check& check) const {
    const TomlTable* const tables = FindTable(own_, name);
    for (std::size_t i = 0; tables != nullptr && i < tables->entries.size(); ++i) {
      const TomlEntry& entry = tables->entries[i];
      RETURN_IF_ERROR(check(entry, *FindTable(merged_, name)->Find(entry.key)->value.table()));
    }
    return {};
  }

  [[nodiscard]] Status CheckOptions() const {
    return ForEach("options", [this](const TomlEntry& entry, const TomlTable& option) -> Status {
      const auto is_sign = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
      if (!std::all_of(entry.key.begin(), entry.key.end(), is_sign)) {
        return At(entry.line, fmt::format("option '{}'; expected a name of letters, digits and '_'",
                                          entry.key));
      }
      const TomlEntry* const fallback = option.Find("default");
      if (fallback == nullptr) {
        return At(entry.line,
                  fmt::format("[options.{}] has no 'default'; expected one", entry.key));
      }
      const TomlEntry* const own = entry.value.table()->Find("default");
      return CheckDefault(entry.key, option, own == nullptr ? entry.line : own->line);
    });
  }

  [[nodiscard]] Status CheckDefault(const std::string& name, const TomlTable& option,
                                    int line) const {
    const std::string text = option.Find("default")->value.AsText().value_or("");
    if (const TomlTable* const values = FindTable(option, "values")) {
      std::vector<std::string_view> names;
      for (const TomlEntry& value : values->entries) {
        names.push_back(value.key);
      }
      return values->Find(text) != nullptr
                 ? Status()
                 : At(line, UnknownName(fmt::format("value of option '{}'", name), text, names));
    }
    const TomlEntry* const kind = option.Find("kind");
    const std::optional<double> number = ToNumber(text);
    const bool any = kind != nullptr && kind->value.AsText() == "text";
    return any || (number && *number >= 0)
               ? Status()
               : At(line, fmt::format("the default of option '{}' is '{}'; expected a number >= 0, "
                                      "or kind = \"text\"",
                                      name, text));
  }

  [[nodiscard]] Status CheckPolicies() const {
    return ForEach("policies", [this](const TomlEntry& entry, const TomlTable& policy) -> Status {
      return policy.Find("policy") != nullptr
                 ? Status()
                 : At(entry.line,
                      fmt::format("[policies.{}] has no 'policy'; expected a name of the "
                                  "catalogue (`trainyard policies`), with its options",
                                  entry.key));
    });
  }

  // Of the preset, and of each policy with rules of its own.
  [[nodiscard]] Status CheckRules() const {
    std::vector<TomlEntry> policies{{}};
    if (const TomlTable* const named = FindTable(merged_, "policies")) {
      policies.insert(policies.end(), named->entries.begin(), named->entries.end());
    }
    for (const TomlEntry& policy : policies) {
      PresetValues values(merged_, policy.value.table(), {.name = file_, .values = {}});
      if (const std::optional<RuleConflict> conflict = FindConflict(values)) {
        return At(LineOf(policy.key, conflict->table), conflict->message);
      }
      if (!values.status().ok()) {
        return values.status();
      }
    }
    return {};
  }

  // Where the file has such a table, for the policy if it can; its first line if it has none.
  [[nodiscard]] int LineOf(std::string_view policy, std::string_view table) const {
    const TomlTable* const policies = FindTable(own_, "policies");
    const TomlEntry* const own = policies == nullptr ? nullptr : policies->Find(policy);
    const TomlEntry* const inner = own == nullptr ? nullptr : own->value.table()->Find(table);
    const TomlEntry* const shared = own_.Find(table);
    const TomlEntry* const found = inner != nullptr ? inner : shared != nullptr ? shared : own;
    return found == nullptr ? 1 : found->line;
  }

  [[nodiscard]] Status CheckValue(const PresetValue& value) const {
    using Kind = PresetKey::Kind;
    const TomlValue& written = value.entry.value;
    const std::string raw = written.AsText().value_or("");
    const std::string text = values_.Substitute(raw);
    const bool of_options = value.key.table.starts_with("options.");
    if (const std::size_t dollar = ReplaceAll(text, "$*", "").find('$');
        dollar != std::string::npos && !of_options && !value.key.table.empty()) {
      const std::string rest = ReplaceAll(text, "$*", "").substr(dollar + 1);
      const std::size_t end =
          rest.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
      return At(value.entry.line,
                UnknownName("option of the preset", rest.substr(0, end), values_.options()));
    }
    const bool is_flag = std::holds_alternative<bool>(written.value);
    const bool is_text = std::holds_alternative<std::string>(written.value);
    const bool wrong_type =
        (value.key.kind == Kind::kText && !is_text) ||
        (is_flag && value.key.kind != Kind::kFlag && value.key.kind != Kind::kScalar);
    std::optional<std::string> expected = WhatIsExpected(value.key, wrong_type ? "" : text);
    if (wrong_type && !expected) {
      expected = KindName(value.key.kind);
    }
    if (expected) {
      const std::string shown = is_flag ? (raw == "1" ? "true" : "false") : "'" + raw + "'";
      return At(value.entry.line,
                fmt::format("{} {} is {}{}; expected {}", value.table, value.entry.key, shown,
                            text == raw ? "" : fmt::format(" ('{}')", text), *expected));
    }
    return CheckName(value, text);
  }

  // Names of components: known, with options that they have.
  [[nodiscard]] Status CheckName(const PresetValue& value, const std::string& text) const {
    std::optional<ComponentKind> kind;
    for (const ComponentKind one :
         {ComponentKind::kPolicy, ComponentKind::kPlacement, ComponentKind::kAdmission}) {
      const bool named = value.key.key == NameOf(one) &&
                         (value.key.table == "defaults" || value.key.table == "policies.*");
      if (named || value.key.table == TableOfNames(one)) {
        kind = one;
      }
    }
    if (!kind) {
      return {};
    }
    const Result<NamedOptions> named = ParseNamedOptions(ReplaceAll(text, "$*", "1"));
    if (!named.ok()) {
      return At(value.entry.line, named.error().message);
    }
    // What stands for a name of the preset is of the catalogue; elsewhere it may be either.
    const bool meaning = value.key.key == "*" ||
                         (value.key.table == "policies.*" && *kind == ComponentKind::kPolicy);
    const Result<NamedOptions> meant =
        meaning ? named : InCatalogue(*kind, merged_, values_, named.value());
    const Status status =
        meant.ok() ? CheckCatalogueName(*kind, meant.value()) : Status(meant.error());
    return status.ok() ? status : At(value.entry.line, status.error().message);
  }

  const std::string& file_;
  const TomlTable& own_;
  const TomlTable& merged_;
  PresetValues values_;
};

// ------------------------------------------------------------------------------------------
// loading

class Presets {
 public:
  const Result<Preset>& Find(const std::string& name) {  // NOLINT(misc-no-recursion): file to base
    const auto known = presets_.find(name);
    if (known != presets_.end()) {
      return known->second;
    }
    Result<Preset> read = PresetPath(name).empty() ? BuiltIn(name) : OfUser(name);
    return presets_.emplace(name, std::move(read)).first->second;
  }

 private:
  static Result<Preset> BuiltIn(const std::string& name) {
    const auto found = std::find_if(kPresets.begin(), kPresets.end(),
                                    [&name](const EmbeddedPreset& p) { return p.name == name; });
    if (found == kPresets.end()) {
      return InvalidArgument(UnknownName("preset", name, kNames) +
                             "; a file of your own is given by its path: FILE.toml");
    }
    Result<TomlTable> root = ParseToml("presets/" + name + ".toml", found->text());
    return root.ok() ? Result<Preset>(Preset{.name = name,
                                             .base = {},
                                             .text = std::string(found->text()),
                                             .sha256 = {},
                                             .root = std::move(root).value()})
                     : root.error();
  }

  Result<Preset> OfUser(const std::string& path) {  // NOLINT(misc-no-recursion): file to base
    Result<std::string> text = ReadFile(path);
    if (!text.ok()) {
      return BadInput(text.error().message);
    }
    ASSIGN_OR_RETURN(const TomlTable own, ParseToml(path, text.value()));
    // Keys before all else: the rest may rely on tables being tables.
    RETURN_IF_ERROR(ForEachPresetValue(path, own, [](const PresetValue&) -> Status { return {}; }));
    Preset preset{
        .name = path, .base = {}, .text = std::move(text).value(), .sha256 = {}, .root = own};
    preset.sha256 = Sha256Hex(preset.text);
    RETURN_IF_ERROR(OnBase(path, own, preset));
    const Status status = FileCheck(path, own, preset.root).Check();
    return status.ok() ? Result<Preset>(std::move(preset)) : status.error();
  }

  // NOLINTNEXTLINE(misc-no-recursion): file to base
  Status OnBase(const std::string& path, const TomlTable& own, Preset& preset) {
    const TomlSection section(path, "top-level", own);
    if (Status status = section.ReadText("base", preset.base);
        !status.ok() || preset.base.empty()) {
      return status;
    }
    if (!IsBuiltIn(preset.base)) {
      return section.BadKey("base", UnknownName("preset", preset.base, kNames));
    }
    TomlTable base = Find(preset.base).value().root;
    // They are of the base alone.
    std::erase_if(base.entries, [](const TomlEntry& entry) {
      return entry.key == "name" || entry.key == "summary" || entry.key == "source";
    });
    preset.root = Merged(std::move(base), own);
    return {};
  }

  std::map<std::string, Result<Preset>, std::less<>> presets_;  // their addresses stay
};

}  // namespace

std::span<const std::string_view> PresetNames() { return kNames; }

std::string_view PresetPath(std::string_view preset) {
  if (IsBuiltIn(preset.substr(0, preset.find(':')))) {
    return {};
  }
  const std::size_t ending = preset.find(std::string(kEnding) + ":");
  const std::string_view path = ending != std::string_view::npos
                                    ? preset.substr(0, ending + kEnding.size())
                                : preset.ends_with(kEnding) ? preset
                                                            : preset.substr(0, preset.find(':'));
  const bool is_path = path.ends_with(kEnding) || path.find('/') != std::string_view::npos;
  return is_path ? path : std::string_view();
}

Result<NamedOptions> ParsePresetName(std::string_view preset) {
  const std::string_view path = PresetPath(preset);
  if (path.empty()) {
    return ParseNamedOptions(preset.empty() ? "sound" : preset);
  }
  Result<NamedOptions> named = ParseNamedOptions("file" + std::string(preset.substr(path.size())));
  if (named.ok()) {
    named.value().name = path;
  }
  return named;
}

Result<const Preset*> FindPreset(const std::string& name) {
  static std::mutex mutex;
  static Presets presets;
  const std::lock_guard lock(mutex);
  const Result<Preset>& found = presets.Find(name);
  return found.ok() ? Result<const Preset*>(&found.value()) : found.error();
}

}  // namespace trainyard
