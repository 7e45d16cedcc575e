// SPDX-License-Identifier: Apache-2.0
#include "cli/output_paths.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <system_error>

namespace trainyard::cli {
namespace {

namespace fs = std::filesystem;

// Under whatever names; false where one of them is not there.
bool AreSame(const fs::path& a, const fs::path& b) {
  std::error_code error;
  return fs::equivalent(a, b, error) && !error;
}

// Devices and pipes take what any number of writers give them.
bool HoldsData(const fs::path& path) {
  std::error_code error;
  return !fs::exists(path, error) || fs::is_regular_file(path, error);
}

fs::path FolderOf(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

bool IsInput(const fs::path& output, const fs::path& input) {
  std::error_code error;
  return fs::is_directory(input, error)
             ? fs::is_regular_file(output, error) && AreSame(FolderOf(output), input)
             : AreSame(output, input);
}

// One text for all names of a file, whether it is there or not.
std::string IdentityOf(const fs::path& path) {
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(fs::absolute(path, error), error);
  return (error ? path : whole).string();
}

}  // namespace

void AddPaths(const std::string& name, const std::vector<std::string>& files,
              std::vector<NamedPath>& paths) {
  for (const std::string& file : files) {
    paths.push_back({.name = name, .path = file});
  }
}

Status CheckOutputs(const std::vector<NamedPath>& inputs, const std::vector<NamedPath>& outputs) {
  std::map<std::string, std::string> taken;  // by file, the option that writes it
  for (const NamedPath& output : outputs) {
    if (output.path.empty() || !HoldsData(output.path)) {
      continue;
    }
    for (const NamedPath& input : inputs) {
      if (!input.path.empty() && IsInput(output.path, input.path)) {
        return InvalidArgument(
            fmt::format("{}: {} would write over this file, which is an input ({} {}); expected "
                        "another place for the output",
                        output.path, output.name, input.name, input.path));
      }
    }
    const auto [other, is_new] = taken.emplace(IdentityOf(output.path), output.name);
    if (!is_new) {
      return InvalidArgument(
          other->second == output.name
              ? fmt::format("{}: {} would write this file twice; expected runs with different "
                            "names of folders",
                            output.path, output.name)
              : fmt::format("{}: {} and {} would both write this file; expected different files",
                            output.path, other->second, output.name));
    }
  }
  return {};
}

}  // namespace trainyard::cli
