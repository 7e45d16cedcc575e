// SPDX-License-Identifier: Apache-2.0
// The options about reading a trace that all commands share.
#pragma once

#include <CLI/App.hpp>

namespace trainyard {

void AddReadingOptions(CLI::App& command, bool& skip_bad_rows, int& procs_per_gpu);

}  // namespace trainyard
