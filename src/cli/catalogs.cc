// SPDX-License-Identifier: Apache-2.0
// trainyard policies, placements, admissions, presets: what there is.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "admission/catalog.h"
#include "base/text.h"
#include "cli/commands.h"
#include "placement/catalog.h"
#include "policy/catalog.h"
#include "policy/groupings.h"
#include "scenario/preset.h"
#include "tuning/catalog.h"

namespace trainyard {
namespace {

using Json = nlohmann::ordered_json;

// The plug-in that a component comes from; empty: built in.
using OriginOf = std::string_view (*)(std::string_view name);

template <typename Entries>
void PrintEntries(const Entries& entries, OriginOf origin_of) {
  for (const auto& entry : entries) {
    const std::string_view origin = origin_of(entry.name);
    fmt::print("{:<14} {}{}\n", entry.name, entry.help,
               origin.empty() ? "" : fmt::format(" [plug-in {}]", origin));
    for (const OptionSpec& option : entry.options) {
      const std::string choices =
          option.choices.empty() ? "" : fmt::format(" ({})", option.choices);
      fmt::print("    {:<26} {}{}\n", fmt::format("{}={}", option.key, option.fallback),
                 option.help, choices);
    }
  }
}

template <typename Entries>
Json EntriesJson(const Entries& entries, OriginOf origin_of) {
  Json list = Json::array();
  for (const auto& entry : entries) {
    Json options = Json::array();
    for (const OptionSpec& option : entry.options) {
      options.push_back({{"key", option.key},
                         {"default", option.fallback},
                         {"help", option.help},
                         {"choices", option.choices}});
    }
    list.push_back({{"name", entry.name}, {"help", entry.help}, {"options", options}});
    if (const std::string_view origin = origin_of(entry.name); !origin.empty()) {
      list.back()["plugin"] = origin;
    }
  }
  return list;
}

struct CatalogOptions {
  std::string only;  // empty: all entries
  bool json = false;
};

// `what` is one entry.
template <typename Entries>
Status PrintCatalog(const Entries& entries, OriginOf origin_of, std::string_view what,
                    const CatalogOptions& options) {
  std::vector<std::string_view> names;
  std::vector<typename Entries::value_type> shown;
  for (const auto& entry : entries) {
    names.push_back(entry.name);
    if (options.only.empty() || entry.name == options.only) {
      shown.push_back(entry);
    }
  }
  if (shown.empty()) {
    return InvalidArgument(UnknownName(what, options.only, names));
  }
  if (options.json) {
    const Json list = EntriesJson(shown, origin_of);
    fmt::print("{}\n", (options.only.empty() ? list : list.front()).dump(2));
  } else {
    PrintEntries(shown, origin_of);
  }
  return {};
}

template <typename Catalog>
void ShowCatalog(CLI::App* command, Command& chosen, const std::string& what, Catalog catalog,
                 OriginOf origin_of) {
  auto options = std::make_shared<CatalogOptions>();
  command->add_option("NAME", options->only, "show this " + what + " only");
  command->add_flag("--json", options->json, "print JSON");
  command->callback([options, what, catalog, origin_of, &chosen] {
    chosen.run = [options, what, catalog, origin_of] {
      return PrintCatalog(catalog(), origin_of, what, *options);
    };
  });
}

Json PresetJson(const PresetDescription& preset) {
  const auto names = [](const std::vector<PresetName>& list) {
    Json json = Json::object();
    for (const PresetName& name : list) {
      json[name.name] = name.meaning;
    }
    return json;
  };
  Json options = Json::array();
  for (const PresetOption& option : preset.options) {
    options.push_back({{"key", option.key}, {"default", option.fallback}, {"help", option.help}});
  }
  return {{"name", preset.name},
          {"summary", preset.summary},
          {"documentation", preset.source},
          {"options", options},
          {"policies", names(preset.policies)},
          {"placements", names(preset.placements)},
          {"admissions", names(preset.admissions)},
          {"file", preset.text}};
}

void PrintPreset(const PresetDescription& preset, bool whole) {
  fmt::print("{:<14} {}\n", preset.name, preset.summary);
  for (const PresetOption& option : preset.options) {
    fmt::print("    {:<26} {}\n", fmt::format("{}={}", option.key, option.fallback), option.help);
  }
  for (const PresetName& policy : preset.policies) {
    fmt::print("    policy {:<19} = {}\n", policy.name, policy.meaning);
  }
  for (const PresetName& placement : preset.placements) {
    fmt::print("    placement {:<16} = {}\n", placement.name, placement.meaning);
  }
  if (whole) {
    fmt::print("\n{}", preset.text);
  }
}

Status Presets(const std::string& only, bool json) {
  Json list = Json::array();
  for (const std::string_view name : PresetNames()) {
    if (!only.empty() && only != name) {
      continue;
    }
    const Result<PresetDescription> preset = DescribePreset(name);
    if (!preset.ok()) {
      return preset.error();
    }
    list.push_back(PresetJson(preset.value()));
    if (!json) {
      PrintPreset(preset.value(), !only.empty());
    }
  }
  if (list.empty()) {
    return DescribePreset(only).error();
  }
  if (json) {
    fmt::print("{}\n", (only.empty() ? list : list.front()).dump(2));
  }
  return {};
}

}  // namespace

void AddCatalogs(CLI::App& app, Command& chosen) {
  const auto built_in = [](std::string_view /*name*/) { return std::string_view(); };
  ShowCatalog(app.add_subcommand("policies", "list the policies and their options, or show one"),
              chosen, "policy", PolicyCatalog, PolicyOrigin);
  ShowCatalog(
      app.add_subcommand("placements", "list the placements and their options, or show one"),
      chosen, "placement", PlacementCatalog, built_in);
  ShowCatalog(
      app.add_subcommand("admissions", "list the admission rules and their options, or show one"),
      chosen, "admission", AdmissionCatalog, built_in);
  ShowCatalog(app.add_subcommand("groupings", "list who can share GPUs with whom, and the options"),
              chosen, "grouping", GroupingCatalog, built_in);
  ShowCatalog(app.add_subcommand("tunings", "list what can be tuned beside GPUs, and the options"),
              chosen, "tuning", TuningCatalog, built_in);
  auto only = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  CLI::App* presets = app.add_subcommand("presets", "list the presets, or show one");
  presets->add_option("NAME", *only, "show this preset with its file");
  presets->add_flag("--json", *json, "print JSON");
  presets->callback(
      [only, json, &chosen] { chosen.run = [only, json] { return Presets(*only, *json); }; });
}

}  // namespace trainyard
