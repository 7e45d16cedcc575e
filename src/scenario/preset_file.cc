// SPDX-License-Identifier: Apache-2.0
#include "scenario/preset_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>

#include "base/catalog_lookup.h"
#include "base/text.h"
#include "base/try.h"
#include "catalog/catalog.h"
#include "io/file.h"
#include "io/sha256.h"
#include "scenario/preset_keys.h"
#include "scenario/preset_values.h"

extern "C" {
extern const char presets_begin;  // NOLINT(readability-identifier-naming): of the embedded files
extern const char presets_end;    // NOLINT(readability-identifier-naming)
}

namespace trainyard::scenario {
namespace {

// The names and texts of the built-in presets, as trainyard_embed_all has laid them.
struct BuiltInPresets {
  BuiltInPresets() {
    const std::string_view all(&presets_begin,
                               static_cast<std::size_t>(&presets_end - &presets_begin));
    const std::vector<std::string_view> parts = base::Split(all, std::string_view("\0", 1));
    for (std::size_t i = 0; i + 1 < parts.size(); i += 2) {
      names.push_back(parts[i]);
      texts.push_back(parts[i + 1]);
    }
  }
  std::vector<std::string_view> names;  // sorted
  std::vector<std::string_view> texts;  // in the order of their names
};
const BuiltInPresets& BuiltIns() {
  static const BuiltInPresets kPresets;
  return kPresets;
}

constexpr std::string_view kEnding = ".toml";

std::string UnknownPreset(std::string_view name) {
  return base::UnknownName("preset", name, BuiltIns().names) +
         "; a file of your own is given by its path: FILE.toml";
}

bool IsBuiltIn(std::string_view name) {
  return std::binary_search(BuiltIns().names.begin(), BuiltIns().names.end(), name);
}

// The keys of `own` take the place of those of `base`, table by table.
io::TomlTable Merged(io::TomlTable base, const io::TomlTable& own) {  // NOLINT(misc-no-recursion)
  for (const io::TomlEntry& entry : own.entries) {
    const auto same =
        std::find_if(base.entries.begin(), base.entries.end(),
                     [&entry](const io::TomlEntry& other) { return other.key == entry.key; });
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
  FileCheck(const std::string& file, const io::TomlTable& own, const io::TomlTable& merged)
      : file_(file),
        own_(own),
        merged_(merged),
        values_(merged, nullptr, {.name = file, .values = {}}) {}

  [[nodiscard]] Status Check() const {
    RETURN_IF_ERROR(CheckOptions());
    RETURN_IF_ERROR(CheckPolicies());
    RETURN_IF_ERROR(ForEachPresetValue(
        file_, own_, [this](const PresetValue& value) { return CheckValue(value); }));
    return CheckRules();
  }

 private:
  [[nodiscard]] Error At(int line, std::string_view what) const {
    return BadInput(fmt::format("{}:{}: {}", file_, line, what));
  }

  // Calls `check` with each table in the file's own [NAME], and with that on top of the base.
  template <typename Check>
  [[nodiscard]] Status ForEach(std::string_view name, const Check& check) const {
    for (const io::TomlEntry& entry : EntriesIn(own_, name)) {
      RETURN_IF_ERROR(check(entry, *FindEntry(&merged_, name, entry.key)->value.table()));
    }
    return {};
  }

  [[nodiscard]] Status CheckOptions() const {
    return ForEach(
        "options", [this](const io::TomlEntry& entry, const io::TomlTable& option) -> Status {
          const auto is_sign = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
          if (!std::all_of(entry.key.begin(), entry.key.end(), is_sign)) {
            return At(
                entry.line,
                fmt::format("option '{}'; expected a name of letters, digits and '_'", entry.key));
          }
          const io::TomlEntry* const fallback = option.Find("default");
          if (fallback == nullptr) {
            return At(entry.line,
                      fmt::format("[options.{}] has no 'default'; expected one", entry.key));
          }
          const io::TomlEntry* const own = entry.value.table()->Find("default");
          return CheckDefault(entry.key, option, own == nullptr ? entry.line : own->line);
        });
  }

  [[nodiscard]] Status CheckDefault(const std::string& name, const io::TomlTable& option,
                                    int line) const {
    const std::string text = TextIn(&option, "default");
    if (const io::TomlTable* const values = FindTable(option, "values")) {
      return values->Find(text) != nullptr
                 ? Status()
                 : At(line, base::UnknownName(fmt::format("value of option '{}'", name), text,
                                              NamesIn(*values)));
    }
    const std::optional<double> number = base::ToNumber(text);
    return TextIn(&option, "kind") == "text" || (number && *number >= 0)
               ? Status()
               : At(line, fmt::format("the default of option '{}' is '{}'; expected a number >= 0, "
                                      "or kind = \"text\"",
                                      name, text));
  }

  [[nodiscard]] Status CheckPolicies() const {
    return ForEach(
        "policies", [this](const io::TomlEntry& entry, const io::TomlTable& policy) -> Status {
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
    std::vector<io::TomlEntry> policies{{}};
    const std::span<const io::TomlEntry> named = EntriesIn(merged_, "policies");
    policies.insert(policies.end(), named.begin(), named.end());
    for (const io::TomlEntry& policy : policies) {
      PresetValues values(merged_, policy.value.table(), {.name = file_, .values = {}});
      if (const std::optional<RuleConflict> conflict = values.FindConflict()) {
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
    const io::TomlEntry* const own = FindEntry(&own_, "policies", policy);
    const io::TomlEntry* const inner = own == nullptr ? nullptr : own->value.table()->Find(table);
    const io::TomlEntry* const shared = own_.Find(table);
    const io::TomlEntry* const found = inner != nullptr ? inner : shared != nullptr ? shared : own;
    return found == nullptr ? 1 : found->line;
  }

  [[nodiscard]] Status CheckValue(const PresetValue& value) const {
    using Kind = PresetKey::Kind;
    const io::TomlValue& written = value.entry.value;
    const std::string raw = written.AsText().value_or("");
    const std::string text = values_.Substitute(raw);
    const bool of_options = value.key.table.starts_with("options.");
    if (const std::size_t dollar = base::ReplaceAll(text, "$*", "").find('$');
        dollar != std::string::npos && !of_options && !value.key.table.empty()) {
      const std::string rest = base::ReplaceAll(text, "$*", "").substr(dollar + 1);
      const std::size_t end =
          rest.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
      return At(value.entry.line,
                base::UnknownName("option of the preset", rest.substr(0, end), values_.options()));
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
      const bool named = value.key.key == base::NameOf(one) &&
                         (value.key.table == "defaults" || value.key.table == "policies.*");
      if (named || value.key.table == TableOfNames(one)) {
        kind = one;
      }
    }
    if (!kind) {
      return {};
    }
    const Result<NamedOptions> named = ParseNamedOptions(base::ReplaceAll(text, "$*", "1"));
    if (!named.ok()) {
      return At(value.entry.line, named.error().message);
    }
    // What stands for a name of the preset is of the catalogue; elsewhere it may be either.
    const bool meaning = value.key.key == "*" ||
                         (value.key.table == "policies.*" && *kind == ComponentKind::kPolicy);
    const Result<NamedOptions> meant = meaning ? named : values_.InCatalogue(*kind, named.value());
    if (!meant.ok()) {
      return At(value.entry.line, meant.error().message);
    }
    const auto known = base::LookUp(catalog::Catalog(*kind), meant.value(), base::NameOf(*kind));
    return known.ok() ? Status() : At(value.entry.line, known.error().message);
  }

  const std::string& file_;
  const io::TomlTable& own_;
  const io::TomlTable& merged_;
  PresetValues values_;
};

// ----------------------------------------------------------------------------------------- loading

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
    const std::vector<std::string_view>& names = BuiltIns().names;
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      return InvalidArgument(UnknownPreset(name));
    }
    const std::string text(BuiltIns().texts[static_cast<std::size_t>(found - names.begin())]);
    ASSIGN_OR_RETURN(io::TomlTable root, io::ParseToml("presets/" + name + ".toml", text));
    return Preset{.name = name, .base = {}, .text = text, .sha256 = {}, .root = std::move(root)};
  }

  Result<Preset> OfUser(const std::string& path) {  // NOLINT(misc-no-recursion): file to base
    Result<std::string> text = io::ReadFile(path);
    if (!text.ok()) {
      return BadInput(text.error().message);
    }
    ASSIGN_OR_RETURN(const io::TomlTable own, io::ParseToml(path, text.value()));
    // Keys before all else: the rest may rely on tables being tables.
    RETURN_IF_ERROR(ForEachPresetValue(path, own, [](const PresetValue&) -> Status { return {}; }));
    Preset preset{
        .name = path, .base = {}, .text = std::move(text).value(), .sha256 = {}, .root = own};
    preset.sha256 = io::Sha256Hex(preset.text);
    reading_.push_back(path);
    const Status based = OnBase(path, own, preset);
    reading_.pop_back();
    RETURN_IF_ERROR(based);
    const Status status = FileCheck(path, own, preset.root).Check();
    return status.ok() ? Result<Preset>(std::move(preset)) : status.error();
  }

  // NOLINTNEXTLINE(misc-no-recursion): file to base
  Status OnBase(const std::string& path, const io::TomlTable& own, Preset& preset) {
    const io::TomlSection section(path, "top-level", own);
    if (Status status = section.ReadText("base", preset.base);
        !status.ok() || preset.base.empty()) {
      return status;
    }
    ASSIGN_OR_RETURN(const std::string name, NameOfBase(section, path, preset.base));
    const Result<Preset>& found = Find(name);
    RETURN_IF_ERROR(found);
    io::TomlTable base = found.value().root;
    if (!found.value().sha256.empty()) {
      preset.sha256 = io::Sha256Hex(preset.text + found.value().sha256);
    }
    // They are of the base alone.
    std::erase_if(base.entries, [](const io::TomlEntry& entry) {
      return entry.key == "name" || entry.key == "summary" || entry.key == "source";
    });
    preset.root = Merged(std::move(base), own);
    return {};
  }

  // That of a built-in preset, or the path of a file: `base` is relative to the file that names it.
  [[nodiscard]] Result<std::string> NameOfBase(const io::TomlSection& section,
                                               const std::string& path,
                                               const std::string& base) const {
    if (IsBuiltIn(base)) {
      return base;
    }
    if (PresetPath(base) != base) {  // no path, or one with options
      return section.BadKey("base", UnknownPreset(base));
    }
    const std::filesystem::path file = std::filesystem::path(path).parent_path() / base;
    std::error_code error;
    if (!std::filesystem::exists(file, error)) {
      return section.BadKey("base", fmt::format("no file '{}'; expected the path of a preset, "
                                                "relative to this file",
                                                base));
    }
    const auto is_same = [&](const std::string& other) {
      return std::filesystem::equivalent(other, file, error);
    };
    const auto again = std::find_if(reading_.begin(), reading_.end(), is_same);
    if (again != reading_.end()) {
      const std::vector<std::string_view> cycle(again, reading_.end());
      return section.BadKey("base",
                            fmt::format("'{}' begins with this file itself ({}); expected a "
                                        "base that does not",
                                        base, base::Join(cycle, ", ")));
    }
    return file.string();
  }

  std::map<std::string, Result<Preset>, std::less<>> presets_;  // their addresses stay
  std::vector<std::string> reading_;  // files of which each is the base of the one before it
};

}  // namespace

std::span<const std::string_view> PresetNames() { return BuiltIns().names; }

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

}  // namespace trainyard::scenario
