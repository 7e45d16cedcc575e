// SPDX-License-Identifier: Apache-2.0
// Commands that wait for jobs to end.
#pragma once

namespace CLI {
class App;
}

namespace trainyard::cli {

struct Command;

void AddRun(CLI::App& app, Command& chosen);
void AddWait(CLI::App& app, Command& chosen);

}  // namespace trainyard::cli
