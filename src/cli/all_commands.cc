// SPDX-License-Identifier: Apache-2.0
// The commands of the program, in the order in which its help lists them.
#include "cli/commands.h"
#include "cli/help/examples.h"

namespace trainyard::cli {

void AddAllCommands(CLI::App& app, Command& chosen) {
  AddSimulate(app, chosen);
  AddCompare(app, chosen);
  AddSweep(app, chosen);
  AddReproduce(app, chosen);
  AddReport(app, chosen);
  AddTrace(app, chosen);
  AddLoader(app, chosen);
  AddProfile(app, chosen);
  AddLive(app, chosen);
  AddReplayLive(app, chosen);
  AddCatalogs(app, chosen);
  AddClientCommands(app, chosen);
  AddHelpCommands(app, chosen);
  AddExamples(app);
}

}  // namespace trainyard::cli
