// SPDX-License-Identifier: Apache-2.0
// trainyard config show, diff, apply, history, rollback: what the cluster decides by.
#include <fmt/format.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/live/client_json.h"
#include "cli/live/configuring.h"
#include "cli/numbers.h"
#include "io/file.h"

namespace trainyard::cli {
namespace {

struct ConfigOptions : Configuring {
  bool force = false;  // whatever number the file states
  std::optional<std::uint64_t> number{};
  std::string file;
};

std::string AuthorText(const std::string& author) {
  return author.empty() ? "the options of a start" : Printable(author);
}

Status Show(ConfigOptions options) {
  ASSIGN_OR_RETURN(const v1::ConfigurationReply shown, FetchConfiguration(options, options.number));
  if (options.json) {
    PrintJson(shown);
  } else {
    fmt::print("# configuration {}, since {}, by {}\n{}", shown.number(),
               base::UtcText(shown.since()), AuthorText(shown.author()), shown.text());
  }
  return {};
}

Result<v1::ConfigurationReply> FetchHistory(const ConfigOptions& options) {
  v1::ClientRequest request;
  request.mutable_configuration()->set_history(true);
  ASSIGN_OR_RETURN(const v1::ClientReply reply, CallTo(options, request));
  return reply.configuration();
}

Status ShowHistory(ConfigOptions options) {
  ASSIGN_OR_RETURN(const v1::ConfigurationReply reply, FetchHistory(options));
  if (options.json) {
    PrintJsonList(
        std::vector<v1::PastConfiguration>(reply.history().begin(), reply.history().end()));
    return {};
  }
  std::vector<std::vector<std::string>> rows{{"number", "since", "by", "changes"}};
  for (const v1::PastConfiguration& one : reply.history()) {
    rows.push_back({std::to_string(one.number()), base::UtcText(one.since()),
                    AuthorText(one.author()), OrDash(one.changes())});
  }
  fmt::print("{}", TableText(rows));
  return {};
}

// The number that 'config show' has written at the top; none: it is another text.
std::optional<std::uint64_t> NumberIn(std::string_view text) {
  constexpr std::string_view kTop = "# configuration ";
  if (!text.starts_with(kTop)) {
    return std::nullopt;
  }
  text.remove_prefix(kTop.size());
  return base::ToInteger<std::uint64_t>(text.substr(0, text.find(',')));
}

Status ConfigureFromFile(ConfigOptions options) {
  const bool is_input = options.file == "-";
  ASSIGN_OR_RETURN(const std::string text,
                   io::ReadFile(is_input ? std::string("/dev/stdin") : options.file));
  if (!options.expected && !options.force) {
    options.expected = NumberIn(text);
  }
  options.how = "'trainyard config apply --check-index {} " + Printable(options.file) + "' does it";
  return Configure(options, is_input ? std::string("standard input") : options.file, text);
}

// Without a number: the one before the one in force.
Status RollBack(ConfigOptions options) {
  ASSIGN_OR_RETURN(const v1::ConfigurationReply present, FetchHistory(options));
  if (!options.number) {
    if (present.history_size() < 2) {
      return Failed(fmt::format("configuration {} is the first one; there is none before it",
                                present.number()));
    }
    options.number = present.history(present.history_size() - 2).number();
  }
  ASSIGN_OR_RETURN(const v1::ConfigurationReply former,
                   FetchConfiguration(options, options.number));
  options.expected = present.number();
  options.how = "without --rehearse it is";
  return Configure(options, fmt::format("configuration {}", former.number()), former.text());
}

struct ConfigWords {
  const char* name;
  const char* about;
  Status (*run)(ConfigOptions options);
};

struct Added {
  CLI::App& command;
  ConfigOptions& options;
};

Added Add(CLI::App& config, const ConfigWords& words, Command& chosen) {
  const auto options = std::make_shared<ConfigOptions>();
  CLI::App* command = config.add_subcommand(words.name, words.about);
  AddClusterOptions(*command, *options);
  command->callback([options, run = words.run, &chosen] {
    chosen.run = [options, run] { return run(*options); };
  });
  return {.command = *command, .options = *options};
}

void AddFile(const Added& added) {
  added.command
      .add_option("FILE", added.options.file,
                  "a configuration as 'config show' prints it; -: standard input")
      ->required();
}

}  // namespace

void AddConfig(CLI::App& app, Command& chosen) {
  CLI::App* config = app.add_subcommand("config", "what the cluster decides by");
  config->require_subcommand(1);
  const Added show =
      Add(*config,
          {"show", "policy, placement and nodes in force, as TOML, with number and time", Show},
          chosen);
  show.command.add_option("--number", show.options.number, "an earlier one, of 'config history'")
      ->transform(WholeNumber());
  const Added diff =
      Add(*config,
          {"diff", "what a file would change, and which jobs it would touch", ConfigureFromFile},
          chosen);
  diff.options.rehearse = true;
  AddFile(diff);
  const Added apply =
      Add(*config,
          {"apply", "put what a file says in force, whole or not at all (for admins)",
           ConfigureFromFile},
          chosen);
  AddFile(apply);
  apply.command
      .add_option("--check-index", apply.options.expected,
                  "refuse unless the configuration in force has this number (default: the "
                  "one that 'config show' has written at the top of the file)")
      ->transform(WholeNumber());
  apply.command
      .add_flag("--force", apply.options.force, "whatever number is at the top of the file")
      ->excludes("--check-index");
  Add(*config,
      {"history", "the configurations so far: when, by whom and what changed", ShowHistory},
      chosen);
  const Added rollback = Add(
      *config, {"rollback", "put an earlier configuration in force again (for admins)", RollBack},
      chosen);
  rollback.command
      .add_option("NUMBER", rollback.options.number,
                  "of 'config history' (default: the one before the one in force)")
      ->transform(WholeNumber());
  rollback.command.add_flag("--rehearse", rollback.options.rehearse,
                            "change nothing; say what would change, and which jobs it would touch");
}

}  // namespace trainyard::cli
