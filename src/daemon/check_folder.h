// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "trainyard/status.h"

namespace trainyard {

// Whether the folder that an option names is there and may be written to, or can be made.
// Errors: kInvalidArgument with the option, and the part of the path that stands in the way.
[[nodiscard]] Status CheckFolder(std::string_view option, const std::string& path);

}  // namespace trainyard
