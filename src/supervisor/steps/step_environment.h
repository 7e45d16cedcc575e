// SPDX-License-Identifier: Apache-2.0
// Which variables of srun its tasks have.
#pragma once

#include <string>

namespace trainyard::supervisor {

// Makes of the environment of this process what --export of srun says: "ALL", "NONE", or names, of
// which those with a value are set. What tells of the job and the node stays.
void ApplyExport(const std::string& exported);

}  // namespace trainyard::supervisor
