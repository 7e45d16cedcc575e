// SPDX-License-Identifier: Apache-2.0
#include "scenario/preset.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <tuple>

#include "base/text.h"
#include "base/try.h"
#include "catalog/catalog.h"
#include "scenario/preset_keys.h"
#include "scenario/preset_values.h"

namespace trainyard::scenario {
namespace {

profile::OverheadModel OverheadsOf(PresetDraft& draft) {
  if (draft.by_formula) {
    return profile::OverheadModel(draft.formula);
  }
  draft.table.fallback.restart = draft.restart.value_or(draft.table.fallback.restart);
  return profile::OverheadModel(std::move(draft.table));
}

// A preset's rules with the user's options. A file's own are checked when it is read.
Status CheckRules(PresetValues& values, const NamedOptions& given) {
  const std::optional<RuleConflict> conflict = values.FindConflict();
  return conflict ? InvalidArgument("preset '" + given.name + "': " + conflict->message) : Status();
}

// ------------------------------------------------------------------------------------------ names

// "unknown policy 'x' ...", with the built-in presets that know the name.
Error WithHint(Error error, ComponentKind kind, const std::string& name) {
  for (const std::string_view preset : PresetNames()) {
    const Result<const Preset*> other = FindPreset(std::string(preset));
    if (other.ok() && FindEntry(&other.value()->root, TableOfNames(kind), name) != nullptr) {
      error.message += "; preset '" + std::string(preset) + "' knows '" + name + "' (--preset " +
                       std::string(preset) + ")";
    }
  }
  return error;
}

// The admission or placement that a policy comes with: as the preset says, or by its own entry.
std::string Companion(const io::TomlTable* own, const std::string& policy, std::string_view what) {
  if (own != nullptr) {
    return TextIn(own, what);
  }
  for (const ComponentEntry& entry : catalog::Catalog(ComponentKind::kPolicy)) {
    if (entry.name == policy) {
      return std::string(what == "admission" ? entry.admission : entry.placement);
    }
  }
  return {};
}

std::vector<PresetName> NamesOf(const io::TomlTable& root, ComponentKind kind) {
  std::vector<PresetName> names;
  for (const io::TomlEntry& entry : EntriesIn(root, TableOfNames(kind))) {
    names.push_back({entry.key, MeaningOf(entry, kind)});
  }
  return names;
}

// A preset and the options that the user gives with it.
struct Chosen {
  const Preset* preset = nullptr;
  NamedOptions given;
};

Result<Chosen> Choose(const std::string& text) {
  ASSIGN_OR_RETURN(NamedOptions named, ParsePresetName(text));
  const Result<const Preset*> preset = FindPreset(named.name);
  return preset.ok() ? Result<Chosen>(Chosen{.preset = preset.value(), .given = named})
                     : preset.error();
}

}  // namespace

Result<PresetDescription> DescribePreset(std::string_view name) {
  ASSIGN_OR_RETURN(const Preset* found, FindPreset(std::string(name)));
  const Preset& preset = *found;
  const io::TomlTable& root = preset.root;
  const std::string given = TextIn(&root, "name");
  PresetDescription description{
      .name = given.empty() ? std::filesystem::path(name).stem().string() : given,
      .base = preset.base,
      .sha256 = preset.sha256,
      .summary = TextIn(&root, "summary"),
      .source = TextIn(&root, "source"),
      .options = {},
      .policies = NamesOf(root, ComponentKind::kPolicy),
      .placements = NamesOf(root, ComponentKind::kPlacement),
      .admissions = NamesOf(root, ComponentKind::kAdmission),
      .text = preset.text};
  if (description.summary.empty() && !preset.base.empty()) {
    description.summary = "preset '" + preset.base + "' with changes";
  }
  for (const io::TomlEntry& option : EntriesIn(root, "options")) {
    const io::TomlTable* const table = option.value.table();
    description.options.push_back({option.key, TextIn(table, "default"), TextIn(table, "help")});
  }
  return description;
}

Result<double> TraceUnit(const std::string& preset) {
  ASSIGN_OR_RETURN(const Chosen chosen, Choose(preset));
  PresetValues values(chosen.preset->root, nullptr, chosen.given);
  const double unit = values.Number("trace", "unit");
  return values.status().ok() ? Result<double>(unit) : values.status().error();
}

Result<std::string> PresetContent(const std::string& preset) {
  const std::string_view path = PresetPath(preset);
  if (path.empty()) {
    return preset;
  }
  const Result<const Preset*> found = FindPreset(std::string(path));
  return found.ok()
             ? Result<std::string>("sha256-" + found.value()->sha256 + preset.substr(path.size()))
             : found.error();
}

namespace {

// What a run may have or not, and no preset sets.
Status TakeOptional(const PresetRequest& request, ResolvedPreset& resolved) {
  for (const auto& [text, into] : {std::pair{&request.tuning, &resolved.tuning},
                                   std::pair{&request.grouping, &resolved.grouping}}) {
    if (text->empty()) {
      continue;
    }
    ASSIGN_OR_RETURN(NamedOptions named, ParseNamedOptions(*text));
    *into = std::move(named);
  }
  return {};
}

// The components as they were asked for, else as the policy or the preset has them.
struct Asked {
  NamedOptions policy;
  NamedOptions placement;
  NamedOptions admission;
  const io::TomlTable* own = nullptr;  // what the preset has for that policy; null: nothing
};

// The placement of a policy that has one of its own in the preset: users may name that one, or the
// default of the preset, which other policies have.
Status CheckFixedPlacement(const PresetRequest& request, const Asked& asked, PresetValues& values) {
  if (request.placement.empty() || request.placement == values.Text("defaults", "placement")) {
    return {};
  }
  ASSIGN_OR_RETURN(const NamedOptions given, ParseNamedOptions(request.placement));
  const auto known = [&values](const NamedOptions& placement) {
    return values.InCatalogue(ComponentKind::kPlacement, placement);
  };
  ASSIGN_OR_RETURN(const NamedOptions meant, known(given));
  ASSIGN_OR_RETURN(const NamedOptions own, known(asked.placement));
  if (meant.name == own.name && meant.values == own.values) {
    return {};
  }
  return InvalidArgument("policy '" + asked.policy.name + "' of preset '" + request.preset +
                         "' has a placement of its own, '" + TextIn(asked.own, "placement") +
                         "'; expected that or none instead of '" + request.placement + "'");
}

Result<Asked> AskedOf(const PresetRequest& request, const io::TomlTable& root,
                      PresetValues& values) {
  const auto ask = [&values](const std::string& given, std::string_view what) {
    return ParseNamedOptions(given.empty() ? values.Text("defaults", what) : given);
  };
  Asked asked;
  ASSIGN_OR_RETURN(asked.policy, ask(request.policy, "policy"));
  const io::TomlEntry* const entry = FindEntry(&root, "policies", asked.policy.name);
  asked.own = entry == nullptr ? nullptr : entry->value.table();
  const auto companion = [&](std::string_view what) {
    return values.Substitute(Companion(asked.own, asked.policy.name, what));
  };
  const std::string own = TextIn(asked.own, "placement");
  ASSIGN_OR_RETURN(
      asked.placement,
      ask(own.empty() && !request.placement.empty() ? request.placement : companion("placement"),
          "placement"));
  if (!own.empty()) {
    RETURN_IF_ERROR(CheckFixedPlacement(request, asked, values));
  }
  ASSIGN_OR_RETURN(
      asked.admission,
      ask(request.admission.empty() ? companion("admission") : request.admission, "admission"));
  return asked;
}

// In the catalogues' own names.
Status TakeNames(const Asked& asked, const PresetValues& values, ResolvedPreset& resolved) {
  for (const auto& [kind, name, into] :
       {std::tuple{ComponentKind::kPolicy, &asked.policy, &resolved.policy},
        std::tuple{ComponentKind::kPlacement, &asked.placement, &resolved.placement},
        std::tuple{ComponentKind::kAdmission, &asked.admission, &resolved.admission}}) {
    Result<NamedOptions> known = values.InCatalogue(kind, *name);
    if (!known.ok()) {
      return WithHint(known.error(), kind, name->name);
    }
    *into = std::move(known).value();
  }
  return {};
}

}  // namespace

Result<ResolvedPreset> ResolvePreset(const PresetRequest& request) {
  ASSIGN_OR_RETURN(const Chosen chosen, Choose(request.preset));
  const Preset& preset = *chosen.preset;
  const io::TomlTable& root = preset.root;
  PresetValues shared(root, nullptr, chosen.given);
  ASSIGN_OR_RETURN(const Asked asked, AskedOf(request, root, shared));
  PresetValues values(root, asked.own, chosen.given);
  PresetDraft draft = values.Draft();
  ResolvedPreset& resolved = draft.preset;
  resolved.overheads = OverheadsOf(draft);
  resolved.file_sha256 = preset.sha256;
  for (const Status& status : {TakeNames(asked, values, resolved), values.status(),
                               CheckRules(values, chosen.given), TakeOptional(request, resolved)}) {
    if (!status.ok()) {
      return status.error();
    }
  }
  return resolved;
}

}  // namespace trainyard::scenario
