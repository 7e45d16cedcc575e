// SPDX-License-Identifier: Apache-2.0
// trainyard node add, set, remove: which nodes a running cluster has.
#pragma once

#include "cli/commands.h"

namespace trainyard::cli {

void AddNodeChanges(CLI::App& node, Command& chosen);

}  // namespace trainyard::cli
