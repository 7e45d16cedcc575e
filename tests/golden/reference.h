// SPDX-License-Identifier: Apache-2.0
// Where the published inputs and results lie (docs/golden.md).
#pragma once

#include <cstdlib>
#include <string>

namespace trainyard {

// TRAINYARD_REFERENCE, or the folder `shared` beside the source tree. It may not exist.
[[nodiscard]] inline std::string Reference() {
  const char* given = std::getenv("TRAINYARD_REFERENCE");
  return given != nullptr ? given : TRAINYARD_SOURCE_DIR "/../shared";
}

}  // namespace trainyard
