// SPDX-License-Identifier: Apache-2.0
#include "supervisor/steps/step_environment.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace trainyard::supervisor {

void ApplyExport(const std::string& exported) {
  const std::vector<std::string_view> items = base::Split(exported, ",");
  if (std::find(items.begin(), items.end(), "ALL") == items.end()) {
    std::vector<std::string> dropped;
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string_view text = *entry;
      const std::string_view name = text.substr(0, text.find('='));
      const bool kept = name.starts_with("SLURM") || name.starts_with("TRAINYARD_") ||
                        name == "PATH" || name == "HOME" || name == "CUDA_VISIBLE_DEVICES" ||
                        std::find(items.begin(), items.end(), name) != items.end();
      if (!kept) {
        dropped.emplace_back(name);
      }
    }
    for (const std::string& name : dropped) {
      unsetenv(name.c_str());
    }
  }
  for (const std::string_view item : items) {
    if (const std::size_t equals = item.find('='); equals != std::string_view::npos) {
      setenv(std::string(item.substr(0, equals)).c_str(),
             std::string(item.substr(equals + 1)).c_str(), 1);
    }
  }
}

}  // namespace trainyard::supervisor
