// SPDX-License-Identifier: Apache-2.0
// Runs the built program as a user would.
#pragma once

#include <string>

namespace trainyard {

struct CommandResult {
  int status = -1;
  std::string out;
  std::string err;
};

// `arguments` as in a shell, run in the source folder. With `out` its standard output goes to that
// file, and CommandResult::out is empty.
[[nodiscard]] CommandResult RunTrainyard(const std::string& arguments, const std::string& out = "");

// A file in a folder that lasts as long as the test program.
[[nodiscard]] std::string WriteScratch(const std::string& name, const std::string& text);
[[nodiscard]] std::string ScratchPath(const std::string& name);
[[nodiscard]] std::string ReadText(const std::string& path);

}  // namespace trainyard
