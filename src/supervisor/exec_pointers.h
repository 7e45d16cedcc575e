// SPDX-License-Identifier: Apache-2.0
// Arguments and variables as exec and posix_spawn take them.
#pragma once

#include <string>
#include <vector>

namespace trainyard::supervisor {

// With the null pointer at their end. Valid as long as the texts.
[[nodiscard]] inline std::vector<char*> ExecPointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) {
    pointers.push_back(const_cast<char*>(text.c_str()));  // exec does not write to them
  }
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace trainyard::supervisor
