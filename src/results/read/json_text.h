// SPDX-License-Identifier: Apache-2.0
// JSON files, checked before they are parsed.
#pragma once

#include <string>

#include "trainyard/status.h"

namespace trainyard::results {

// The text of a file that holds one JSON object, perhaps packed: parsing it does not fail. Errors:
// those of ReadFile; "path:line: what is wrong", where the file holds no JSON object.
[[nodiscard]] Result<std::string> ReadJsonObject(const std::string& path);

}  // namespace trainyard::results
