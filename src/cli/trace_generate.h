// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"

namespace trainyard {

// trace generate, generate-profiles and generate-failures.
void AddGenerate(CLI::App& trace, Command& chosen);
void AddGenerateProfiles(CLI::App& trace, Command& chosen);
void AddGenerateFailures(CLI::App& trace, Command& chosen);

// Writes what `trace generate --KEY=VALUE ...` gives to the file.
[[nodiscard]] Status GenerateTraceFile(
    const std::vector<std::pair<std::string, std::string>>& options, const std::string& path);

}  // namespace trainyard
