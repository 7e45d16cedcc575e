// SPDX-License-Identifier: Apache-2.0
// JSON files, checked before anybody takes them apart.
#pragma once

#include <string>

#include "trainyard/status.h"

namespace trainyard {

// The text of a file that holds one JSON object, perhaps packed: parsing it does not fail. Errors:
// those of ReadFile; "path:line: what is wrong", where it is not one.
[[nodiscard]] Result<std::string> ReadJsonObject(const std::string& path);

}  // namespace trainyard
