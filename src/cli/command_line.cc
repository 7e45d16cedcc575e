// SPDX-License-Identifier: Apache-2.0
#include "cli/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "cli/live/config/config_file.h"
#include "requests/slurm/slurm_words.h"
#include "trainyard/version.h"

namespace trainyard::cli {
namespace {

using Words = std::span<const std::string>;

// ---------------------------------------------------------------------------------------- commands

// The parser only says that a word was not expected; a slip of the pen deserves more. `path`: of
// the program and the commands before the word. Empty: the word is known, or no command.
std::string UnknownCommand(const CLI::App& app, std::string_view path, std::string_view word) {
  if (word.empty() || word.front() == '-' || app.get_subcommands(nullptr).empty()) {
    return {};
  }
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (command->get_name() == word) {
      return {};
    }
    if (!command->get_group().empty()) {  // hidden commands have none
      names.push_back(command->get_name());
    }
  }
  // The command of a command, where the other is left out: `convert` for `trace convert`.
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    for (const CLI::App* inner : command->get_subcommands(nullptr)) {
      if (inner->get_name() == word) {
        return fmt::format("{}: unknown command '{}'; did you mean '{} {}'?\n", path, word,
                           command->get_name(), word);
      }
    }
  }
  // No slip of the pen, but what other programs call it.
  struct Elsewhere {
    std::string_view path;
    std::string_view word;
    std::string_view here;
  };
  static constexpr std::array kElsewhere{
      Elsewhere{"trainyard trace", "check", "validate"},
      Elsewhere{"trainyard", "cordon", "trainyard drain"},
      Elsewhere{"trainyard", "uncordon", "trainyard undrain"},
      Elsewhere{"trainyard", "evict", "trainyard requeue"},
      Elsewhere{"trainyard", "kill", "trainyard cancel"},
      Elsewhere{"trainyard", "ps", "trainyard status"},
      Elsewhere{"trainyard", "jobs", "trainyard status"},
      Elsewhere{"trainyard", "queue", "trainyard status"},
      Elsewhere{"trainyard", "version", "trainyard --version"},
      Elsewhere{"trainyard", "top", "trainyard nodes"},
      Elsewhere{"trainyard", "get", "trainyard status' or 'trainyard nodes"},
      Elsewhere{"trainyard", "describe", "trainyard status JOB"},
      Elsewhere{"trainyard", "delete", "trainyard cancel' or 'trainyard node remove"},
      Elsewhere{"trainyard", "reload", "trainyard config apply"},
      Elsewhere{"trainyard node", "list", "trainyard nodes"},
      Elsewhere{"trainyard node", "show", "trainyard nodes"},
      Elsewhere{"trainyard node", "get", "trainyard nodes"},
      Elsewhere{"trainyard node", "drain", "trainyard drain"},
      Elsewhere{"trainyard node", "cordon", "trainyard drain"},
      Elsewhere{"trainyard node", "undrain", "trainyard undrain"},
      Elsewhere{"trainyard node", "uncordon", "trainyard undrain"},
      Elsewhere{"trainyard node", "delete", "trainyard node remove"},
      Elsewhere{"trainyard node", "rm", "trainyard node remove"},
      Elsewhere{"trainyard config", "get", "trainyard config show"},
      Elsewhere{"trainyard config", "view", "trainyard config show"},
      Elsewhere{"trainyard config", "set", "trainyard config apply"},
      Elsewhere{"trainyard config", "edit",
                "trainyard config show > FILE' and 'trainyard config apply FILE"},
      Elsewhere{"trainyard config", "list", "trainyard config history"},
      Elsewhere{"trainyard config", "log", "trainyard config history"},
      Elsewhere{"trainyard config", "undo", "trainyard config rollback"},
      Elsewhere{"trainyard config", "plan", "trainyard config diff"},
      Elsewhere{"trainyard config", "validate", "trainyard config diff"}};
  for (const Elsewhere& one : kElsewhere) {
    if (one.path == path && one.word == word) {
      return fmt::format("{}: unknown command '{}'; did you mean '{}'?\n", path, word, one.here);
    }
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  return fmt::format("{}: {}\n", path, base::UnknownName("command", word, known));
}

// Likewise of `words`, which name a command and perhaps one of its own.
std::string UnknownCommand(const CLI::App& app, Words words) {
  if (words.empty()) {
    return {};
  }
  const std::string& word = words.front();
  if (const std::string here =
          requests::InsteadOfCommand(std::vector<std::string_view>(words.begin(), words.end()));
      !here.empty()) {
    return fmt::format("trainyard: '{}' is a command of Slurm; here it is '{}' ({} has a table)\n",
                       word, here, requests::kSlurmPage);
  }
  if (std::string unknown = UnknownCommand(app, "trainyard", word); !unknown.empty()) {
    return unknown;
  }
  const auto commands = app.get_subcommands(nullptr);
  const auto command = std::find_if(commands.begin(), commands.end(), [&word](const CLI::App* one) {
    return one->get_name() == word;
  });
  return command != commands.end() && words.size() > 1
             ? UnknownCommand(**command, fmt::format("trainyard {}", word), words[1])
             : std::string();
}

// From the word on that should name a command: the first that does not belong to --plugin.
Words FromCommandOn(Words words) {
  while (words.size() > 2 && words.front() == "--plugin") {
    words = words.subspan(2);
  }
  return words;
}

// The one that will be run; empty: perhaps none, or others are looked at, too, as a file's tables
// may be of any command.
std::string_view CommandNeeded(Words words) {
  const bool from_file = std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word.starts_with("--config");
  });
  words = FromCommandOn(words);
  return from_file || words.empty() ? std::string_view() : std::string_view(words.front());
}

// ----------------------------------------------------------------------------------------- options

// The command, or command of a command, whose options are being given.
const CLI::App& InnermostCommand(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
  }
  return *command;
}

std::string PathOf(const CLI::App& command) {
  std::string path = command.get_name();
  for (const CLI::App* one = command.get_parent(); one != nullptr; one = one->get_parent()) {
    path.insert(0, one->get_name() + " ");
  }
  return path;
}

bool Has(const CLI::App& command, std::string_view option) {
  const auto options = command.get_options();
  return std::any_of(options.begin(), options.end(), [option](const CLI::Option* one) {
    const auto& names = one->get_lnames();
    return std::any_of(names.begin(), names.end(),
                       [option](const std::string& name) { return "--" + name == option; });
  });
}

bool IsOption(std::string_view word) {
  return word.size() > 1 && word.front() == '-' && word != "--" &&
         std::isdigit(static_cast<unsigned char>(word[1])) == 0 && word[1] != '.';
}

// "--gpu" of "--gpu=3", "-N" of "-N2".
std::string_view GivenName(std::string_view word) {
  constexpr std::size_t kShort = 2;
  return word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, kShort);
}

// What an option of Slurm is for the command, as a sentence. Empty: nothing is known of it.
// `submits`: the command does what sbatch does.
std::string InsteadOfSlurms(const CLI::App& command, std::string_view given, bool submits) {
  if (submits) {
    return requests::InsteadOfOption(given);
  }
  const bool selects = Has(command, "--user") && Has(command, "--state");
  return selects ? requests::InsteadOfSelection(given) : std::string();
}

// What is said of an option that the command does not have. `submits`: as sbatch does.
std::string UnknownOption(const CLI::App& command, std::string_view word, bool submits) {
  std::vector<std::string> names;
  for (const CLI::App* one = &command; one != nullptr; one = one->get_parent()) {
    for (const CLI::Option* option : one->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        names.push_back("--" + name);
      }
    }
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string_view given = GivenName(word);
  const std::string path = PathOf(command);
  if (Has(command, given)) {
    return fmt::format(
        "trainyard: option '{0}' stands before its command; expected it behind: {1} "
        "{0} ...\n",
        given, path);
  }
  const std::string here = InsteadOfSlurms(command, given, submits);
  const std::string_view near =
      here.empty() && given.starts_with("--") ? base::NearestName(given, known) : "";
  return fmt::format("trainyard: unknown option '{}'{}{}; `{} --help` lists all\n", given,
                     here.empty() ? "" : fmt::format(": {} ({})", here, requests::kSlurmPage),
                     near.empty() ? "" : fmt::format("; did you mean '{}'?", near), path);
}

bool IsScriptFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, 2> begin{};
  return file.read(begin.data(), begin.size()) && begin == std::array{'#', '!'};
}

// A job's command (or a training script) that follows the options as if it were one: tells how it
// is to be written.
std::string LacksTheMark(std::string_view command, Words extras) {
  if (command == "submit" && extras.size() > 1 && IsScriptFile(extras.front())) {
    return fmt::format(
        "trainyard submit: '{1}' is no option; expected -- before the script's arguments: "
        "trainyard "
        "submit [OPTIONS] {0} -- {2}\n",
        extras.front(), extras[1], fmt::join(extras.subspan(1), " "));
  }
  return fmt::format(
      "trainyard {0}: '{1}' is no option; expected -- before the {3}: trainyard {0} [OPTIONS] -- "
      "{2}\n",
      command, extras.front(), fmt::join(extras, " "),
      command.starts_with("profile") ? "training script" : "job's command");
}

bool TakesCommand(std::string_view word) {
  constexpr std::array<std::string_view, 5> kWithCommand{"submit", "run", "attach", "replay-live",
                                                         "profile"};
  return std::find(kWithCommand.begin(), kWithCommand.end(), word) != kWithCommand.end();
}

}  // namespace

// What is said of the words that belong to nothing: there is no '--' before a job's command, or an
// option is not known. Empty: nothing.
std::string CommandLine::WhatIsUnknown(const std::string& command) const {
  const CLI::App& innermost = InnermostCommand(app_);
  const bool submits = command == "submit" || command == "run";
  std::vector<std::string> extras = app_.remaining(true);
  std::vector<std::string> script;  // the first of several words of a command
  if (const CLI::Option* const option = innermost.get_option_no_throw("SCRIPT");
      option != nullptr && !extras.empty()) {
    script = option->results();
  }
  const auto is_extra = [](const std::vector<std::string>& all, const std::string& word) {
    return std::find(all.begin(), all.end(), word) != all.end();
  };
  // As they were typed: what follows an option that is not known may be its value.
  const auto first = std::find_if(words_.begin(), words_.end(), [&](const std::string& word) {
    return is_extra(extras, word) || is_extra(script, word);
  });
  const bool begins_with_word = first != words_.end() && !IsOption(*first);
  const auto option = std::find_if(extras.begin(), extras.end(), IsOption);
  const bool of_script = begins_with_word && !script.empty() && IsScriptFile(script.front()) &&
                         extras.front().starts_with('-') &&
                         !requests::InsteadOfOption(extras.front()).empty();
  if ((submits || command == "profile") && chosen_.rest.empty() && begins_with_word && !of_script) {
    extras.insert(extras.begin(), script.begin(), script.end());
    return LacksTheMark(
        command == "profile" ? "profile " + innermost.get_name() : std::string(command), extras);
  }
  return option == extras.end() ? std::string() : UnknownOption(innermost, *option, submits);
}

CommandLine::CommandLine(std::vector<std::string> words)
    : words_(std::move(words)),
      app_("Trainyard: scheduling of deep-learning training on GPU clusters", "trainyard"),
      chosen_{.run = nullptr,
              .command_line =
                  fmt::format("trainyard{}{}", words_.empty() ? "" : " ", fmt::join(words_, " "))} {
  app_.set_version_flag("--version", "trainyard " TRAINYARD_VERSION);
  app_.require_subcommand(1);
  app_.fallthrough();  // --plugin may also follow the command
  app_.add_option(
          "--plugin", plugins_,
          "shared object with policies, placements or other components, once for each file; also "
          "TRAINYARD_PLUGINS, separated by ':'")
      ->expected(1)
      ->take_all();
  app_.set_config("--config", "", "TOML file with options: a table for each command");
  app_.config_formatter(std::make_shared<ConfigFile>(app_));
  if (words_ != std::vector<std::string>{"--version"}) {
    AddCommand(app_, chosen_, CommandNeeded(words_));
  }
  chosen_.read_again = [words = words_]() -> Result<std::shared_ptr<const Command>> {
    const auto again = std::make_shared<CommandLine>(words);
    if (const Outcome outcome = again->Parse(); !outcome.runs) {
      return BadInput(outcome.errors);
    }
    return std::shared_ptr<const Command>(again, &again->chosen());
  };
}

CommandLine::Outcome CommandLine::Parse() {
  const Words words = FromCommandOn(words_);
  if (std::string unknown = UnknownCommand(app_, words); !unknown.empty()) {
    return {.status = kStatusWrongUsage, .errors = std::move(unknown)};
  }
  const std::string word = words.empty() ? "" : words.front();
  std::vector<std::string> parsed = words_;
  if (TakesCommand(word)) {
    const auto mark = std::find(parsed.begin(), parsed.end(), "--");
    if (mark != parsed.end()) {
      chosen_.rest.assign(mark + 1, parsed.end());
      parsed.erase(mark, parsed.end());
    }
  }
  std::reverse(parsed.begin(), parsed.end());  // as the parser takes them
  try {
    app_.parse(std::move(parsed));
  } catch (const CLI::ConfigError& error) {
    return {.status = kStatusBadInput, .errors = fmt::format("{}\n", error.what())};
  } catch (const CLI::FileError& error) {
    return {.status = kStatusBadInput, .errors = fmt::format("--config: {}\n", error.what())};
  } catch (const CLI::ParseError& error) {
    const bool asks_for_help = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success);
    std::string unknown = asks_for_help ? "" : WhatIsUnknown(word);
    if (!unknown.empty()) {
      return {.status = kStatusWrongUsage, .errors = std::move(unknown)};
    }
    std::ostringstream out;
    std::ostringstream errors;
    const int status = app_.exit(error, out, errors);
    return {.status = status == 0 ? kStatusSuccess : kStatusWrongUsage,
            .out = out.str(),
            .errors = errors.str()};
  }
  return {.runs = true};
}

}  // namespace trainyard::cli
