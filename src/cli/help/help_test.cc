// SPDX-License-Identifier: Apache-2.0
// What the program says of itself is made of its commands, all of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdlib>
#include <fstream>
#include <set>

#include "cli/commands.h"
#include "cli/help/completion.h"
#include "cli/help/manual.h"
#include "support/scratch_folder.h"

namespace trainyard::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class HelpTest : public testing::Test {
 protected:
  HelpTest() {
    app_.require_subcommand(1);  // as the program: a second name is a word of the first command
    AddAllCommands(app_, chosen_);
  }

  CLI::App app_{"a scheduler", "trainyard"};
  Command chosen_{.run = nullptr, .command_line = ""};
};

void ExpectExamples(const CommandText& command) {
  for (const CommandText& inner : command.commands) {
    EXPECT_THAT(inner.footer, HasSubstr("Example: trainyard " + inner.path.substr(10)))
        << "a line of src/cli/help/examples.cc is missing or of another command";
    ExpectExamples(inner);
  }
}

TEST_F(HelpTest, EachCommandHasAnExample) { ExpectExamples(TreeOf(app_)); }

TEST_F(HelpTest, ACommandIsTheSameWithoutTheOthers) {
  for (const CommandText& command : TreeOf(app_).commands) {
    const std::string name = command.path.substr(command.path.find(' ') + 1);
    CLI::App app("a scheduler", "trainyard");
    Command chosen;
    AddCommand(app, chosen, name);
    const std::vector<CommandText> made = TreeOf(app).commands;
    EXPECT_THAT(made, testing::Contains(command));
    EXPECT_TRUE(made.size() < 8 || kWordsAboutAll.find(name) != std::string_view::npos)
        << name << " is missing among the names of all_commands.cc";
  }
}

TEST_F(HelpTest, AllCommandsAreThereWhereNoneIsNamed) {
  for (const std::string_view name : {"", "--help", "simulat", "help"}) {
    CLI::App app("a scheduler", "trainyard");
    Command chosen;
    AddCommand(app, chosen, name);
    EXPECT_EQ(TreeOf(app).commands, TreeOf(app_).commands) << name;
  }
}

// The words that bash would offer for the line so far.
std::set<std::string> Offered(const std::string& script, const std::string& words) {
  const ScratchFolder folder;
  const std::string path = folder.Write(
      "complete.sh", script + "\nCOMP_WORDS=(" + words +
                         ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_trainyard\nprintf '%s\\n' "
                         "\"${COMPREPLY[@]}\" >" +
                         folder.path() + "/out\n");
  EXPECT_EQ(std::system(("bash " + path).c_str()), 0);
  std::ifstream lines(folder.path() + "/out");
  std::set<std::string> offered;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) {
      offered.insert(line);
    }
  }
  return offered;
}

TEST_F(HelpTest, BashCompletesCommandsAndTheirOptions) {
  const std::string script = BashCompletion(TreeOf(app_));
  EXPECT_EQ(Offered(script, "trainyard subm"), (std::set<std::string>{"submit"}));
  EXPECT_EQ(Offered(script, "trainyard trace conv"), (std::set<std::string>{"convert"}));
  EXPECT_EQ(Offered(script, "trainyard submit --gpu"),
            (std::set<std::string>{"--gpus", "--gpu-types"}));
  EXPECT_TRUE(Offered(script, "trainyard run --gpus 2 -- --gpu").empty()) << "the job's own words";
}

TEST_F(HelpTest, ZshKnowsEachOption) {
  const std::string script = ZshCompletion(TreeOf(app_));
  EXPECT_THAT(script, StartsWith("#compdef trainyard\n"));
  EXPECT_THAT(script, HasSubstr("'submit:give the cluster a job'"));
  EXPECT_THAT(script, HasSubstr("'--follow:go on until the job has ended'"));
}

TEST_F(HelpTest, APageOfTheManualForEachCommand) {
  const std::vector<ManualPage> pages = ManualOf(TreeOf(app_));
  std::set<std::string> names;
  for (const ManualPage& page : pages) {
    names.insert(page.name);
    EXPECT_THAT(page.text, StartsWith(".TH \"trainyard"));
    EXPECT_THAT(page.text, HasSubstr(".SH NAME\ntrainyard"));
  }
  EXPECT_EQ(names.size(), pages.size());
  EXPECT_TRUE(names.contains("trainyard.1"));
  EXPECT_TRUE(names.contains("trainyard-trace-convert.1"));
}

TEST_F(HelpTest, NothingInATextIsAnEscapeOrAMacro) {
  const CommandText command{.path = "trainyard x",
                            .help = "a\\b",
                            .footer = ".SH bad\n'quoted'",
                            .options = {{{"-f", "--follow"}, "N", "as --x"}},
                            .commands = {}};
  const std::string page = ManualOf(command).front().text;
  EXPECT_THAT(page, HasSubstr("a\\eb\n"));
  EXPECT_THAT(page, HasSubstr("\n\\&.SH bad\n\\&'quoted'\n"));
  EXPECT_THAT(page, HasSubstr(".TP\n\\fB\\-f\\fR, \\fB\\-\\-follow\\fR \\fIN\\fR\nas \\-\\-x\n"));
}

TEST_F(HelpTest, HelpOfACommandIsThatOfItsOption) {
  app_.parse("help trace convert");
  testing::internal::CaptureStdout();
  EXPECT_TRUE(chosen_.run().ok());
  std::fflush(stdout);
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              HasSubstr("Usage: trainyard trace convert [OPTIONS]"));
}

TEST_F(HelpTest, ACommandThatThereIsNotIsNamed) {
  app_.parse("help sumbit");
  const Status status = chosen_.run();
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr("did you mean 'submit'"));
}

}  // namespace
}  // namespace trainyard::cli
