// SPDX-License-Identifier: Apache-2.0
// Texts that others wrote, for terminals and logs.
#pragma once

#include <string>

namespace trainyard::base {

// What could steer a terminal or pass for another line becomes '?': control characters, line ends
// among them, the line and paragraph separators of Unicode, and its marks of direction.
[[nodiscard]] std::string Printable(std::string text);

}  // namespace trainyard::base
