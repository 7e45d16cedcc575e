// SPDX-License-Identifier: Apache-2.0
// docs/operations.md says of each option of the controller when another value is taken, as the
// program does.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "cli_tests/command.h"

namespace trainyard {
namespace {

using Options = std::set<std::string>;

// What the options of each heading of the help are, by its words without "Changed".
std::map<std::string, Options> OfTheHelp() {
  std::map<std::string, Options> groups;
  std::string heading;
  std::istringstream lines(RunTrainyard("controller --help").out);
  const std::regex option("  (--[a-z-]+)[ :=].*");
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (!line.empty() && line.front() != ' ' && line.back() == ':') {
      heading = line.substr(0, line.size() - 1);
    } else if (std::regex_match(line, found, option) && !heading.starts_with("Options")) {
      groups[std::regex_replace(heading, std::regex("^Changed |^As "), "")].insert(found[1]);
    }
  }
  return groups;
}

std::map<std::string, Options> OfThePage() {
  std::map<std::string, Options> groups;
  std::ifstream page(TRAINYARD_SOURCE_DIR "/docs/operations.md");
  const std::regex row(R"(\| (`--[^|]*) \| (?:not: as )?([^|]*) \|)");
  const std::regex option("--[a-z-]+");
  for (std::string line; std::getline(page, line);) {
    std::smatch found;
    if (std::regex_match(line, found, row)) {
      const std::string options = found[1];
      const std::sregex_iterator end;
      for (std::sregex_iterator at(options.begin(), options.end(), option); at != end; ++at) {
        groups[found[2]].insert(at->str());
      }
    }
  }
  return groups;
}

TEST(OperationsPageTest, SaysWhenEachOptionOfTheControllerIsTaken) {
  const std::map<std::string, Options> help = OfTheHelp();
  EXPECT_EQ(help.size(), 4U);
  EXPECT_EQ(OfThePage(), help);
}

}  // namespace
}  // namespace trainyard
