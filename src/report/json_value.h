// SPDX-License-Identifier: Apache-2.0
// Values that may be absent, in JSON files and pages.
#pragma once

#include <optional>

namespace trainyard {

// null for none. Json: a type of values of nlohmann's library.
template <typename Json, typename T>
[[nodiscard]] Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

}  // namespace trainyard
