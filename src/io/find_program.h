// SPDX-License-Identifier: Apache-2.0
// Where a program lies that is named without a folder.
#pragma once

#include <string>
#include <string_view>

namespace trainyard::io {

// In the first of the folders, "A:B", that has it and lets this process run it; empty: none does.
[[nodiscard]] std::string FindProgram(std::string_view name, std::string_view folders);
// By this process's PATH.
[[nodiscard]] std::string FindProgram(std::string_view name);

}  // namespace trainyard::io
