// SPDX-License-Identifier: Apache-2.0
// Plug-ins: shared objects with further components (docs/adding-a-policy.md).
#pragma once

#include <string>
#include <vector>

#include "trainyard/status.h"

namespace trainyard::cli {

// Loads the files that TRAINYARD_PLUGINS names (separated by ':'), then the given ones, and adds
// their components to the catalogue. A file that is named twice is loaded once. Returns the
// absolute paths of all that are loaded.
[[nodiscard]] Result<std::vector<std::string>> LoadPlugins(const std::vector<std::string>& given);

}  // namespace trainyard::cli
