// SPDX-License-Identifier: Apache-2.0
#include "cli/plugins.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string_view>

#include "base/text.h"
#include "base/try.h"
#include "catalog/catalog.h"
#include "scenario/preset.h"
#include "trainyard/plugin.h"

namespace trainyard::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSymbol = "trainyard_plugin";

Error Refused(const std::string& path, const std::string& what) {
  return InvalidArgument(fmt::format("plug-in '{}': {}", path, what));
}

// The loader's own words, without the path that it begins with.
std::string LoaderError(const std::string& path) {
  const char* error = dlerror();
  const std::string text = error == nullptr ? "unknown error" : error;
  return text.starts_with(path + ": ") ? text.substr(path.size() + 2) : text;
}

// Of a plug-in for another version nothing is read but the stamp, and nothing is called.
Result<std::span<const ComponentEntry>> OpenPlugin(const std::string& path, const fs::path& file) {
  // Never closed: the catalogue points into it.
  void* object = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr) {
    return Refused(path, fmt::format("cannot be loaded: {}; expected a shared object that is built "
                                     "for this program",
                                     LoaderError(file.string())));
  }
  void* symbol = dlsym(object, kSymbol);
  if (symbol == nullptr) {
    return Refused(path, fmt::format("has no symbol '{}'; expected TRAINYARD_PLUGIN(...) in one of "
                                     "its sources",
                                     kSymbol));
  }
  const auto* plugin = static_cast<const Plugin*>(symbol);
  const std::string_view stamp = plugin->stamp;
  if (stamp != TRAINYARD_PLUGIN_STAMP) {
    return Refused(path,
                   fmt::format("is built for '{}'; expected '{}': build it again with the headers "
                               "and the compiler of this program",
                               stamp, TRAINYARD_PLUGIN_STAMP));
  }
  if (plugin->layout != PluginLayout()) {
    return Refused(path,
                   "is built with types of other sizes; expected the headers of this program and "
                   "the same mode of the standard library: build it again");
  }
  return plugin->components();
}

// A preset's own name would hide the component under that preset.
Status CheckPresets(std::span<const ComponentEntry> entries) {
  for (const std::string_view name : scenario::PresetNames()) {
    ASSIGN_OR_RETURN(const scenario::PresetDescription of, scenario::DescribePreset(name));
    for (const ComponentEntry& entry : entries) {
      const std::vector<scenario::PresetName> none;
      const std::vector<scenario::PresetName>& own =
          entry.kind == ComponentKind::kPolicy      ? of.policies
          : entry.kind == ComponentKind::kPlacement ? of.placements
          : entry.kind == ComponentKind::kAdmission ? of.admissions
                                                    : none;
      const auto same = [&entry](const scenario::PresetName& known) {
        return known.name == entry.name;
      };
      if (std::any_of(own.begin(), own.end(), same)) {
        return InvalidArgument(
            fmt::format("{} '{}' exists already (in preset '{}'); expected another name",
                        base::NameOf(entry.kind), entry.name, name));
      }
    }
  }
  return {};
}

Status Load(const std::string& path, const fs::path& file) {
  ASSIGN_OR_RETURN(const std::span<const ComponentEntry> entries, OpenPlugin(path, file));
  Status status = catalog::AddComponents(entries, path);
  status = status.ok() ? CheckPresets(entries) : status;
  return status.ok() ? status : Refused(path, status.error().message);
}

}  // namespace

Result<std::vector<std::string>> LoadPlugins(const std::vector<std::string>& given) {
  std::vector<std::string> paths;
  if (const char* listed = std::getenv("TRAINYARD_PLUGINS"); listed != nullptr) {
    for (const std::string_view path : base::Split(listed, ":")) {
      paths.emplace_back(path);
    }
    std::erase(paths, "");
  }
  paths.insert(paths.end(), given.begin(), given.end());
  std::vector<std::string> loaded;
  for (const std::string& path : paths) {
    // A bare name would be looked for in the folders of the system's libraries.
    std::error_code error;
    const fs::path file = fs::canonical(path, error);
    if (error || !fs::is_regular_file(file, error)) {
      return Refused(path, "no such file; expected a shared object with components");
    }
    if (std::find(loaded.begin(), loaded.end(), file) != loaded.end()) {
      continue;
    }
    RETURN_IF_ERROR(Load(path, file));
    loaded.push_back(file.string());
  }
  return loaded;
}

}  // namespace trainyard::cli
