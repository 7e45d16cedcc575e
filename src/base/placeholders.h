// SPDX-License-Identifier: Apache-2.0
// Words of a command in which `{NAME}` stands for a value.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainyard/status.h"

namespace trainyard::base {

// Values by name.
using Placeholders = std::vector<std::pair<std::string, std::string>>;

// The text with its values; "{{" and "}}" become braces. Errors: an unknown placeholder, a brace
// that belongs to none (kInvalidArgument).
[[nodiscard]] Result<std::string> Fill(std::string_view text, const Placeholders& placeholders);

}  // namespace trainyard::base
