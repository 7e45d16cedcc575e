// SPDX-License-Identifier: Apache-2.0
// The README's commands do what the README shows.
#include <gtest/gtest.h>

#include <sstream>

#include "cli_tests/command.h"

namespace trainyard {
namespace {

struct Shown {
  std::string command;  // after "$ trainyard"
  std::string output;
};

// The ```console blocks: lines that begin with "$ " and what stands below them.
std::vector<Shown> CommandsOf(const std::string& path) {
  std::istringstream text(ReadText(path));
  std::vector<Shown> commands;
  bool inside = false;
  for (std::string line; std::getline(text, line);) {
    if (line.rfind("```", 0) == 0) {
      inside = line == "```console";
    } else if (inside && line.rfind("$ trainyard ", 0) == 0) {
      commands.push_back({.command = line.substr(12), .output = ""});
    } else if (inside && !commands.empty() && commands.back().command.ends_with("\\")) {
      commands.back().command.pop_back();
      commands.back().command += line;
    } else if (inside && !commands.empty()) {
      commands.back().output += line + "\n";
    }
  }
  return commands;
}

TEST(ReadmeTest, EveryCommandPrintsWhatIsShown) {
  const std::vector<Shown> commands = CommandsOf(TRAINYARD_SOURCE_DIR "/README.md");
  EXPECT_GE(commands.size(), 2U);
  for (const Shown& shown : commands) {
    const CommandResult result = RunTrainyard(shown.command);
    EXPECT_EQ(result.status, 0) << shown.command << "\n" << result.err;
    EXPECT_EQ(result.out, shown.output) << shown.command;
  }
}

}  // namespace
}  // namespace trainyard
