// SPDX-License-Identifier: Apache-2.0
// What shells complete: commands, and the options of each.
#pragma once

#include <string>

#include "cli/help/command_tree.h"

namespace trainyard::cli {

[[nodiscard]] std::string BashCompletion(const CommandText& program);
[[nodiscard]] std::string ZshCompletion(const CommandText& program);

}  // namespace trainyard::cli
