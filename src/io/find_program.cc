// SPDX-License-Identifier: Apache-2.0
#include "io/find_program.h"

#include <unistd.h>

#include <cstdlib>

#include "base/text.h"

namespace trainyard::io {

std::string FindProgram(std::string_view name, std::string_view folders) {
  for (const std::string_view folder : base::Split(folders, ":")) {
    std::string file = std::string(folder) + "/" + std::string(name);
    if (access(file.c_str(), X_OK) == 0) {
      return file;
    }
  }
  return {};
}

std::string FindProgram(std::string_view name) {
  const char* const path = std::getenv("PATH");
  return FindProgram(name, path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path);
}

}  // namespace trainyard::io
