// SPDX-License-Identifier: Apache-2.0
// trainyard policies, placements, admissions, presets: what there is.
#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "catalog/catalog.h"
#include "cli/commands.h"
#include "results/write/json_value.h"
#include "scenario/preset.h"

namespace trainyard::cli {
namespace {

std::string PluginOf(const ComponentEntry& entry) {
  return std::string(catalog::OriginOf(entry.kind, entry.name));
}

void PrintEntry(const ComponentEntry& entry) {
  const std::string plugin = PluginOf(entry);
  fmt::print("{:<14} {}{}\n", entry.name, entry.help,
             plugin.empty() ? "" : fmt::format(" [plug-in {}]", plugin));
  for (const OptionSpec& option : entry.options) {
    const std::string choices = option.choices.empty() ? "" : fmt::format(" ({})", option.choices);
    fmt::print("    {:<26} {}{}\n", fmt::format("{}={}", option.key, option.fallback), option.help,
               choices);
  }
}

results::Json EntryJson(const ComponentEntry& entry) {
  results::Json json{
      {"name", entry.name},
      {"help", entry.help},
      {"options", results::ArrayOf(entry.options, [](const OptionSpec& option) -> results::Json {
         return {{"key", option.key},
                 {"default", option.fallback},
                 {"help", option.help},
                 {"choices", option.choices}};
       })}};
  if (const std::string plugin = PluginOf(entry); !plugin.empty()) {
    json["plugin"] = plugin;
  }
  return json;
}

struct CatalogOptions {
  std::string only;  // empty: all entries
  bool json = false;
};

Status PrintCatalog(ComponentKind kind, const CatalogOptions& options) {
  std::vector<std::string_view> names;
  results::Json list = results::Json::array();
  for (const ComponentEntry& entry : catalog::Catalog(kind)) {
    names.push_back(entry.name);
    if (!options.only.empty() && entry.name != options.only) {
      continue;
    }
    list.push_back(EntryJson(entry));
    if (!options.json) {
      PrintEntry(entry);
    }
  }
  if (list.empty()) {
    return InvalidArgument(base::UnknownName(base::NameOf(kind), options.only, names));
  }
  if (options.json) {
    fmt::print("{}\n", (options.only.empty() ? list : list.front()).dump(2));
  }
  return {};
}

void ShowCatalog(CLI::App* command, Command& chosen, ComponentKind kind) {
  auto options = std::make_shared<CatalogOptions>();
  command->add_option("NAME", options->only, fmt::format("show this {} only", base::NameOf(kind)));
  command->add_flag("--json", options->json, "print JSON");
  command->callback([options, kind, &chosen] {
    chosen.run = [options, kind] { return PrintCatalog(kind, *options); };
  });
}

results::Json PresetJson(const scenario::PresetDescription& preset) {
  const auto names = [](const std::vector<scenario::PresetName>& list) {
    results::Json json = results::Json::object();
    for (const scenario::PresetName& name : list) {
      json[name.name] = name.meaning;
    }
    return json;
  };
  return {{"name", preset.name},
          {"base", preset.base.empty() ? results::Json() : results::Json(preset.base)},
          {"sha256", preset.sha256.empty() ? results::Json() : results::Json(preset.sha256)},
          {"summary", preset.summary},
          {"documentation", preset.source},
          {"options",
           results::ArrayOf(
               preset.options,
               [](const scenario::PresetOption& option) -> results::Json {
                 return {{"key", option.key}, {"default", option.fallback}, {"help", option.help}};
               })},
          {"policies", names(preset.policies)},
          {"placements", names(preset.placements)},
          {"admissions", names(preset.admissions)},
          {"file", preset.text}};
}

void PrintPreset(const scenario::PresetDescription& preset, bool whole) {
  fmt::print("{:<14} {}\n", preset.name, preset.summary);
  for (const scenario::PresetOption& option : preset.options) {
    fmt::print("    {:<26} {}\n", fmt::format("{}={}", option.key, option.fallback), option.help);
  }
  for (const scenario::PresetName& policy : preset.policies) {
    fmt::print("    policy {:<19} = {}\n", policy.name, policy.meaning);
  }
  for (const scenario::PresetName& placement : preset.placements) {
    fmt::print("    placement {:<16} = {}\n", placement.name, placement.meaning);
  }
  if (whole) {
    fmt::print("\n{}", preset.text);
  }
}

// `only`: a name or the path of a file; empty: all that are built in.
Status Presets(const std::string& only, bool json) {
  results::Json list = results::Json::array();
  const std::span<const std::string_view> all = scenario::PresetNames();
  const std::string_view one = only;
  for (const std::string_view name : only.empty() ? all : std::span(&one, 1)) {
    ASSIGN_OR_RETURN(const scenario::PresetDescription preset, scenario::DescribePreset(name));
    list.push_back(PresetJson(preset));
    if (!json) {
      PrintPreset(preset, !only.empty());
    }
  }
  if (json) {
    fmt::print("{}\n", (only.empty() ? list : list.front()).dump(2));
  }
  return {};
}

}  // namespace

void AddCatalogs(CLI::App& app, Command& chosen) {
  ShowCatalog(app.add_subcommand("policies", "list the policies and their options, or show one"),
              chosen, ComponentKind::kPolicy);
  ShowCatalog(
      app.add_subcommand("placements", "list the placements and their options, or show one"),
      chosen, ComponentKind::kPlacement);
  ShowCatalog(
      app.add_subcommand("admissions", "list the admission rules and their options, or show one"),
      chosen, ComponentKind::kAdmission);
  ShowCatalog(app.add_subcommand("groupings", "list who can share GPUs with whom, and the options"),
              chosen, ComponentKind::kGrouping);
  ShowCatalog(app.add_subcommand("tunings", "list what can be tuned beside GPUs, and the options"),
              chosen, ComponentKind::kTuning);
  auto only = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  CLI::App* presets = app.add_subcommand("presets", "list the presets, or show one");
  presets->add_option("NAME", *only, "show this preset with its file; FILE.toml: one of your own");
  presets->add_flag("--json", *json, "print JSON");
  presets->callback(
      [only, json, &chosen] { chosen.run = [only, json] { return Presets(*only, *json); }; });
}

}  // namespace trainyard::cli
