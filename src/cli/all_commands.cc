// SPDX-License-Identifier: Apache-2.0
// The commands of the program, in the order in which its help lists them.
#include <algorithm>
#include <vector>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/help/examples.h"

namespace trainyard::cli {
namespace {

std::vector<CommandMaker> AllCommands() {
  std::vector<CommandMaker> all{
      {"simulate", AddSimulate},
      {"compare", AddCompare},
      {"sweep", AddSweep},
      {"reproduce", AddReproduce},
      {"report", AddReport},
      {"trace", AddTrace},
      {"loader", AddLoader},
      {"profile", AddProfile},
      {"controller agent up supervise", AddLive},
      {"replay-live fidelity", AddReplayLive},
      {"policies placements admissions groupings tunings presets", AddCatalogs}};
  const auto clients = ClientCommands();
  all.insert(all.end(), clients.begin(), clients.end());
  all.push_back({kWordsAboutAll, AddHelpCommands});
  return all;
}

bool IsOf(std::string_view names, std::string_view name) {
  const std::vector<std::string_view> all = base::Split(names, " ");
  return std::find(all.begin(), all.end(), name) != all.end();
}

}  // namespace

void AddAllCommands(CLI::App& app, Command& chosen) {
  for (const CommandMaker& maker : AllCommands()) {
    maker.add(app, chosen);
  }
  AddExamples(app);
}

void AddCommand(CLI::App& app, Command& chosen, std::string_view name) {
  const std::vector<CommandMaker> all = AllCommands();
  const auto maker = std::find_if(
      all.begin(), all.end(), [name](const CommandMaker& one) { return IsOf(one.names, name); });
  if (maker == all.end() || IsOf(kWordsAboutAll, name)) {
    AddAllCommands(app, chosen);
    return;
  }
  maker->add(app, chosen);
  AddExamples(app);
}

}  // namespace trainyard::cli
