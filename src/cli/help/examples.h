// SPDX-License-Identifier: Apache-2.0
// An example of each command, below its help.
#pragma once

namespace CLI {
class App;
}

namespace trainyard::cli {

// REQUIRES: all commands are there.
void AddExamples(CLI::App& app);

}  // namespace trainyard::cli
