// SPDX-License-Identifier: Apache-2.0
// Manual pages: one of the program, and one of each command.
#pragma once

#include <string>
#include <vector>

#include "cli/help/command_tree.h"

namespace trainyard::cli {

struct ManualPage {
  std::string name;  // "trainyard-trace-convert.1"
  std::string text;  // roff, by the macros of man(7)
};

[[nodiscard]] std::vector<ManualPage> ManualOf(const CommandText& program);

}  // namespace trainyard::cli
