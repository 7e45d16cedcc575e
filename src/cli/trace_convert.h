// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/commands.h"

namespace trainyard {

// trace convert.
void AddConvert(CLI::App& trace, Command& chosen);

// The formats that are read, those that are written too, and where they are documented: below the
// help of `trace`.
[[nodiscard]] std::string ListOfFormats();

}  // namespace trainyard
