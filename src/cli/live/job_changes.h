// SPDX-License-Identifier: Apache-2.0
// Commands that change what becomes of jobs.
#pragma once

namespace CLI {
class App;
}

namespace trainyard::cli {

struct Command;

void AddCancel(CLI::App& app, Command& chosen);
// hold, release
void AddHold(CLI::App& app, Command& chosen);
void AddRequeue(CLI::App& app, Command& chosen);
void AddUpdate(CLI::App& app, Command& chosen);

}  // namespace trainyard::cli
