// SPDX-License-Identifier: Apache-2.0
// The commands of the program, in the order in which its help lists them.
#include <algorithm>
#include <vector>

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
  for (std::size_t from = 0; from <= names.size();) {
    const std::size_t to = std::min(names.find(' ', from), names.size());
    if (names.substr(from, to - from) == name) {
      return true;
    }
    from = to + 1;
  }
  return false;
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
