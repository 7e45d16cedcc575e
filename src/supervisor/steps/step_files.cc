// SPDX-License-Identifier: Apache-2.0
#include "supervisor/steps/step_files.h"

#include <fmt/format.h>

#include <algorithm>

namespace trainyard::supervisor {

bool IsOfEachTask(const std::string& pattern) {
  for (std::size_t i = 0; i + 1 < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      continue;
    }
    for (++i; i + 1 < pattern.size() && pattern[i] >= '0' && pattern[i] <= '9'; ++i) {
    }
    if (pattern[i] == 't' || pattern[i] == 'n' || pattern[i] == 'N') {
      return true;
    }
  }
  return false;
}

std::string StepFile(const std::string& pattern, const StepNames& names) {
  std::string path;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%' || i + 1 == pattern.size()) {
      path += pattern[i];
      continue;
    }
    int width = 0;
    for (++i; i + 1 < pattern.size() && pattern[i] >= '0' && pattern[i] <= '9'; ++i) {
      width = std::min(10, width * 10 + (pattern[i] - '0'));
    }
    const auto padded = [width](const std::string& number) {
      return fmt::format("{:0>{}}", number, width);
    };
    switch (pattern[i]) {
      case 'j':
        path += padded(names.job);
        break;
      case 'J':
        path += fmt::format("{}.{}", names.job, names.number);
        break;
      case 'A':
        path += padded(names.array.empty() ? names.job : names.array);
        break;
      case 'a':
        path += padded(names.index.empty() ? "4294967294" : names.index);
        break;
      case 's':
        path += padded(std::to_string(names.number));
        break;
      case 't':
        path += padded(std::to_string(names.task));
        break;
      case 'n':
        path += padded(std::to_string(names.node_index));
        break;
      case 'x':
        path += names.name;
        break;
      case 'u':
        path += names.user;
        break;
      case 'N':
        path += names.node.substr(0, names.node.find('.'));
        break;
      case '%':
        path += '%';
        break;
      default:
        path += fmt::format("%{}", pattern[i]);
        break;
    }
  }
  return path;
}

}  // namespace trainyard::supervisor
