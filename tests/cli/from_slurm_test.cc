// SPDX-License-Identifier: Apache-2.0
// Every command and option that docs/from-slurm.md has for users of Slurm is there.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "cli_tests/command.h"
#include "requests/slurm/sbatch_options.h"
#include "requests/slurm/srun_options.h"

namespace trainyard {
namespace {

struct Typed {
  int line = 0;
  std::string command;  // "submit"
  std::string text;     // all of it
};

// What stands between backticks and begins with the program's name, in the table's second column.
std::vector<Typed> CommandsOfTheTable() {
  std::vector<Typed> commands;
  std::ifstream page(TRAINYARD_SOURCE_DIR "/docs/from-slurm.md");
  const std::regex code("`([^`]*)`");
  int number = 0;
  for (std::string line; std::getline(page, line);) {
    ++number;
    if (!line.starts_with("| ")) {
      continue;
    }
    for (std::sregex_iterator at(line.begin(), line.end(), code), end; at != end; ++at) {
      const std::string text = (*at)[1];
      const std::size_t name = text.find("trainyard ");
      if (name == std::string::npos || text.starts_with("man ")) {
        continue;
      }
      std::istringstream words(text.substr(name));
      Typed typed{.line = number, .command = "", .text = text.substr(name)};
      words >> typed.command >> typed.command;
      commands.push_back(typed);
    }
  }
  return commands;
}

// Options before "--": what follows is a job's own command.
std::vector<std::string> OptionsOf(const std::string& text) {
  std::vector<std::string> options;
  std::istringstream words(text);
  for (std::string word; words >> word && word != "--";) {
    if (word.starts_with("--")) {
      options.push_back(word.substr(0, word.find('=')));
    }
  }
  return options;
}

TEST(FromSlurmTest, EveryCommandOfTheTableIsThereWithItsOptions) {
  std::map<std::string, std::string> help;
  const std::vector<Typed> commands = CommandsOfTheTable();
  ASSERT_GT(commands.size(), 35U);
  for (const Typed& typed : commands) {
    if (!help.contains(typed.command)) {
      const CommandResult result = RunTrainyard(typed.command + " --help");
      EXPECT_EQ(result.status, 0) << "line " << typed.line << ": " << typed.text;
      help[typed.command] = result.out;
    }
    for (const std::string& option : OptionsOf(typed.text)) {
      EXPECT_TRUE(std::regex_search(help[typed.command], std::regex(option + "[ ,\n]")))
          << "docs/from-slurm.md:" << typed.line << ": " << typed.command << " has no " << option;
    }
  }
}

// That the table whose heading begins so has a row for each of the options and no other.
void ExpectTable(const std::string& heading, std::span<const requests::SbatchOption> options) {
  using requests::SbatchOption;
  std::ifstream page(TRAINYARD_SOURCE_DIR "/docs/from-slurm.md");
  const std::string text{std::istreambuf_iterator<char>(page), {}};
  const std::size_t begin = text.find(heading);
  ASSERT_NE(begin, std::string::npos) << heading;
  const std::string table = text.substr(begin, text.find("\n\n", begin) + 1 - begin);
  const std::map<SbatchOption::Use, std::string> uses{{SbatchOption::Use::kDone, "done"},
                                                      {SbatchOption::Use::kKept, "kept"},
                                                      {SbatchOption::Use::kNoEffect, "no effect"},
                                                      {SbatchOption::Use::kRefused, "refused"}};
  for (const SbatchOption& option : options) {
    std::string row = "| `--" + std::string(option.name) + "`";
    if (option.letter != 0) {
      row += std::string(", `-") + option.letter + "`";
    }
    row += " | " + uses.at(option.use) + " | " + std::string(option.here) + " |\n";
    EXPECT_NE(table.find(row), std::string::npos) << heading << ": no row " << row;
  }
  constexpr std::size_t kHeading = 2;
  EXPECT_EQ(static_cast<std::size_t>(std::count(table.begin(), table.end(), '\n')),
            options.size() + kHeading)
      << heading;
}

TEST(FromSlurmTest, EveryOptionOfSbatchSrunAndSallocIsInATableAsTheProgramHasIt) {
  ExpectTable("| option of sbatch |", requests::SbatchOptions());
  ExpectTable("| option of srun |", requests::SrunOptions());
  ExpectTable("| option of salloc |", requests::SallocOptions());
  EXPECT_GT(requests::SbatchOptions().size(), 90U);
  EXPECT_GT(requests::SrunOptions().size(), 110U);
  EXPECT_GT(requests::SallocOptions().size(), 80U);
}

// Options that stand alone in the remarks belong to the command of their line.
TEST(FromSlurmTest, EveryOptionOfTheRemarksIsThere) {
  std::ifstream page(TRAINYARD_SOURCE_DIR "/docs/from-slurm.md");
  const std::regex row("\\| .*`trainyard (\\w+)[^|]*\\| (.*)\\|");
  const std::regex option("`(--[a-z-]+)[ `]");
  int found = 0;
  for (std::string line; std::getline(page, line);) {
    std::smatch parts;
    if (!std::regex_match(line, parts, row)) {
      continue;
    }
    const std::string help = RunTrainyard(parts[1].str() + " --help").out;
    const std::string remarks = parts[2].str();
    const bool of_another = remarks.find("trainyard controller") != std::string::npos;
    for (std::sregex_iterator at(remarks.begin(), remarks.end(), option), end;
         at != end && !of_another; ++at) {
      ++found;
      EXPECT_NE(help.find((*at)[1].str()), std::string::npos) << line;
    }
  }
  EXPECT_GT(found, 8);
}

}  // namespace
}  // namespace trainyard
