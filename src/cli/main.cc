// SPDX-License-Identifier: Apache-2.0
// The program: parses the command line and turns outcomes into exit statuses.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/live/config/config_file.h"
#include "cli/plugins.h"
#include "supervisor/launch/launch_steps.h"
#include "trainyard/version.h"

namespace trainyard::cli {
namespace {

constexpr int kSuccess = 0;
constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;
constexpr int kBadInput = 3;

int ExitStatus(const Error& error) {
  switch (error.code) {
    case ErrorCode::kFailed:
      return kFailed;
    case ErrorCode::kInvalidArgument:
      return kWrongUsage;
    case ErrorCode::kBadInput:
      return kBadInput;
  }
  return kFailed;
}

// The parser only says that a word was not expected; a slip of the pen deserves more. `path`: of
// the program and the commands before the word.
bool IsUnknownCommand(const CLI::App& app, std::string_view path, std::string_view word) {
  if (word.empty() || word.front() == '-' || app.get_require_subcommand_min() == 0) {
    return false;
  }
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (command->get_name() == word) {
      return false;
    }
    if (!command->get_group().empty()) {  // hidden commands have none
      names.push_back(command->get_name());
    }
  }
  // The command of a command, where the other is left out: `convert` for `trace convert`.
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    for (const CLI::App* inner : command->get_subcommands(nullptr)) {
      if (inner->get_name() == word) {
        fmt::print(stderr, "{}: unknown command '{}'; did you mean '{} {}'?\n", path, word,
                   command->get_name(), word);
        return true;
      }
    }
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  fmt::print(stderr, "{}: {}\n", path, base::UnknownName("command", word, known));
  return true;
}

// Likewise of `words`, which name a command and perhaps one of its own.
bool IsUnknownCommand(const CLI::App& app, std::span<char*> words) {
  if (words.empty()) {
    return false;
  }
  const std::string_view word = words.front();
  if (IsUnknownCommand(app, "trainyard", word)) {
    return true;
  }
  const auto commands = app.get_subcommands(nullptr);
  const auto command = std::find_if(commands.begin(), commands.end(), [word](const CLI::App* one) {
    return one->get_name() == word;
  });
  return command != commands.end() && words.size() > 1 &&
         IsUnknownCommand(**command, fmt::format("trainyard {}", word), words[1]);
}

// The command, or command of a command, whose options are being given.
const CLI::App& InnermostCommand(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
  }
  return *command;
}

// Likewise of an option that there is not.
bool IsUnknownOption(const CLI::App& app) {
  const CLI::App& command = InnermostCommand(app);
  std::vector<std::string> names;
  for (const CLI::App* one = &command; one != nullptr; one = one->get_parent()) {
    for (const CLI::Option* option : one->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        names.push_back("--" + name);
      }
    }
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  for (const std::string& word : app.remaining(true)) {
    const std::string_view given = std::string_view(word).substr(0, word.find('='));
    if (!given.starts_with("--") || given.size() == 2) {
      continue;
    }
    const std::string_view near = base::NearestName(given, known);
    std::string path = command.get_name();
    for (const CLI::App* one = command.get_parent(); one != nullptr; one = one->get_parent()) {
      path.insert(0, one->get_name() + " ");
    }
    fmt::print(stderr, "trainyard: unknown option '{}'{}; `{} --help` lists all\n", given,
               near.empty() ? "" : fmt::format("; did you mean '{}'?", near), path);
    return true;
  }
  return false;
}

// From the word on that should name a command: the first that does not belong to --plugin.
std::span<char*> CommandWords(int argc, char** argv) {
  int at = std::min(1, argc);
  while (at + 2 < argc && std::string_view(argv[at]) == "--plugin") {
    at += 2;
  }
  return {argv + at, argv + argc};
}

// A job's command (or a training script) that follows the options as if it were one: tells how it
// is to be written.
bool LacksTheMark(std::string_view command, const std::vector<std::string>& extras) {
  if (extras.empty() || extras.front().starts_with("-")) {
    return false;
  }
  fmt::print(
      stderr,
      "trainyard {0}: '{1}' is no option; expected -- before the {3}: trainyard {0} [OPTIONS] -- "
      "{2}\n",
      command, extras.front(), fmt::join(extras, " "),
      command.starts_with("profile") ? "training script" : "job's command");
  return true;
}

// Whether what is wrong with the command has been said: there is no '--' before a job's command, or
// an option is not known.
bool IsExplained(const CLI::App& app, std::string_view word, bool lacks_command) {
  const bool may_lack_mark =
      lacks_command && (word == "submit" || word == "run" || word == "profile");
  const std::string command =
      word == "profile" ? "profile " + InnermostCommand(app).get_name() : std::string(word);
  std::vector<std::string> extras = app.remaining(true);
  if (const CLI::Option* const script = InnermostCommand(app).get_option_no_throw("SCRIPT");
      script != nullptr && !extras.empty()) {  // the first of several words
    extras.insert(extras.begin(), script->results().begin(), script->results().end());
  }
  return (may_lack_mark && LacksTheMark(command, extras)) || IsUnknownOption(app);
}

// All options and commands, and what a command line chooses of them.
struct Program {
  Program() {
    app.set_version_flag("--version", "trainyard " TRAINYARD_VERSION);
    app.require_subcommand(1);
    app.fallthrough();  // --plugin may also follow the command
    app.add_option(
           "--plugin", plugins,
           "shared object with policies, placements or other components, once for each file; also "
           "TRAINYARD_PLUGINS, separated by ':'")
        ->expected(1)
        ->take_all();
    app.set_config("--config", "", "TOML file with options: a table for each command");
    app.config_formatter(std::make_shared<ConfigFile>(app));
    AddAllCommands(app, chosen);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  CLI::App app{"Trainyard: scheduling of deep-learning training on GPU clusters", "trainyard"};
  std::vector<std::string> plugins;
  Command chosen{.run = nullptr, .command_line = "trainyard"};
};

Result<std::shared_ptr<const Command>> ReadAgain(const std::vector<std::string>& arguments) {
  const auto program = std::make_shared<Program>();
  std::vector<std::string> last_first(arguments.rbegin(), arguments.rend());
  try {
    program->app.parse(last_first);
  } catch (const CLI::ParseError& error) {
    return BadInput(error.what());
  }
  return std::shared_ptr<const Command>(program, &program->chosen);
}

int Main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "launch") {  // by mpirun and supervisors only
    return supervisor::RunLaunchStep(std::vector<std::string>(argv + 2, argv + argc));
  }
  Program program;
  CLI::App& app = program.app;
  Command& chosen = program.chosen;
  for (int i = 1; i < argc; ++i) {
    chosen.command_line += std::string(" ") + argv[i];
  }
  const std::span<char*> words = CommandWords(argc, argv);
  if (IsUnknownCommand(app, words)) {
    return kWrongUsage;
  }
  const std::string_view word = words.empty() ? "" : words.front();
  constexpr std::array<std::string_view, 5> kWithCommand{"submit", "run", "attach", "replay-live",
                                                         "profile"};
  if (std::find(kWithCommand.begin(), kWithCommand.end(), word) != kWithCommand.end()) {
    char** const mark = std::find(argv, argv + argc, std::string_view("--"));
    chosen.rest.assign(std::min(mark + 1, argv + argc), argv + argc);
    argc = static_cast<int>(mark - argv);
  }
  chosen.read_again = [arguments = std::vector<std::string>(argv + 1, argv + argc)] {
    return ReadAgain(arguments);
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::ConfigError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return kBadInput;
  } catch (const CLI::FileError& error) {
    fmt::print(stderr, "--config: {}\n", error.what());
    return kBadInput;
  } catch (const CLI::ParseError& error) {
    const bool asks_for_help = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success);
    if (!asks_for_help && IsExplained(app, word, chosen.rest.empty())) {
      return kWrongUsage;
    }
    return app.exit(error) == 0 ? kSuccess : kWrongUsage;
  }
  const Status status = [&]() -> Status {
    ASSIGN_OR_RETURN(chosen.plugins, LoadPlugins(program.plugins));
    return chosen.run();
  }();
  if (!status.ok()) {
    fmt::print(stderr, "{}\n", status.error().message);
    return ExitStatus(status.error());
  }
  return chosen.exit_status;
}

// A failed write to standard output, which AfterOutput tells of.
bool IsOfStandardOutput(const std::exception& error) {
  const auto* const system = dynamic_cast<const std::system_error*>(&error);
  return system != nullptr && std::ferror(stdout) != 0 && system->code().value() != EPIPE;
}

int Guarded(int argc, char** argv) {
  try {
    return Main(argc, argv);
  } catch (const std::exception& error) {  // out of memory, disk gone: nothing else throws
    if (!IsOfStandardOutput(error)) {
      std::fprintf(stderr, "trainyard: %s\n", error.what());  // fmt would throw once more
    }
    return kFailed;
  }
}

// The last of what was printed leaves the program only here: an exit status of 0 must not say that
// it arrived where it did not. A reader that has closed its pipe wants no more, and no complaint.
int AfterOutput(int status) {
  int reason = std::fflush(stdout) == 0 ? 0 : errno;
  if (reason == 0 && std::ferror(stdout) != 0) {
    // An earlier write failed, and nobody has kept why: one more tells it.
    reason = write(STDOUT_FILENO, "\n", 1) < 0 ? errno : EIO;
  }
  if (reason == 0 || reason == EPIPE) {
    return status;
  }
  std::fprintf(stderr, "standard output: writing failed: %s\n",
               std::generic_category().message(reason).c_str());
  return status == kSuccess ? kFailed : status;
}

}  // namespace
}  // namespace trainyard::cli

int main(int argc, char** argv) {
  return trainyard::cli::AfterOutput(trainyard::cli::Guarded(argc, argv));
}
