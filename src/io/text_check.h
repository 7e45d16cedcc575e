// SPDX-License-Identifier: Apache-2.0
// Whether bytes can be taken as lines of text at all.
#pragma once

#include <string>
#include <string_view>

#include "trainyard/status.h"

namespace trainyard {

// Complains about NUL bytes, text that is not UTF-8, lines over kMaxLineBytes and carriage returns
// that do not end a line, as "path:line: ...".
[[nodiscard]] Status CheckText(const std::string& path, std::string_view text);

}  // namespace trainyard
