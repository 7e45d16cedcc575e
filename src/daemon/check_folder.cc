// SPDX-License-Identifier: Apache-2.0
#include "daemon/check_folder.h"

#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

namespace trainyard {

Status CheckFolder(std::string_view option, const std::string& path) {
  std::error_code error;
  std::filesystem::path there = std::filesystem::absolute(path, error);
  while (!std::filesystem::exists(there, error) && there.has_relative_path()) {
    there = there.parent_path();
  }
  if (!std::filesystem::is_directory(there, error)) {
    return InvalidArgument(
        fmt::format("{} is '{}', but {} is no folder; expected a folder, or one "
                    "that can be made",
                    option, path, there.string()));
  }
  if (access(there.c_str(), W_OK | X_OK) != 0) {
    return InvalidArgument(
        fmt::format("{} is '{}', but nothing may be written in {}; expected a "
                    "folder that may be written to",
                    option, path, there.string()));
  }
  return {};
}

}  // namespace trainyard
