// SPDX-License-Identifier: Apache-2.0
// trainyard help, completion, manual: what the program says of itself.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/help/completion.h"
#include "cli/help/manual.h"

namespace trainyard::cli {
namespace {

Status ShowHelp(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  std::string before;
  for (const std::string& word : words) {
    const CLI::App* next = nullptr;
    std::vector<std::string> names;
    for (const CLI::App* inner : command->get_subcommands(nullptr)) {
      next = inner->get_name() == word ? inner : next;
      if (!inner->get_group().empty()) {
        names.push_back(inner->get_name());
      }
    }
    if (next == nullptr) {
      const std::vector<std::string_view> known(names.begin(), names.end());
      return InvalidArgument("trainyard: " + base::UnknownName("command", word, known));
    }
    before += (before.empty() ? "" : " ") + command->get_name();
    command = next;
  }
  fmt::print("{}", command->help(before));
  return {};
}

Status WriteManual(const CLI::App& app, const std::string& folder) {
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code) {
    return Failed(fmt::format("{}: cannot be made: {}", folder, code.message()));
  }
  const std::vector<ManualPage> pages = ManualOf(TreeOf(app));
  for (const ManualPage& page : pages) {
    const std::string path = (std::filesystem::path(folder) / page.name).string();
    std::ofstream file(path, std::ios::binary);
    file << page.text;
    if (!file.flush()) {
      return Failed(path + ": cannot be written");
    }
  }
  fmt::print("{}: {} pages\n", folder, pages.size());
  return {};
}

}  // namespace

void AddHelpCommands(CLI::App& app, Command& chosen) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* help = app.add_subcommand("help", "what a command does, and its options");
  help->add_option("COMMAND", *words, "such as submit, or trace convert");
  help->callback(
      [&app, &chosen, words] { chosen.run = [&app, words] { return ShowHelp(app, *words); }; });

  auto shell = std::make_shared<std::string>();
  CLI::App* completion =
      app.add_subcommand("completion", "print what completes commands and options in a shell");
  completion->add_option("SHELL", *shell, "bash or zsh")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}));
  completion->callback([&app, &chosen, shell] {
    chosen.run = [&app, shell] {
      const CommandText tree = TreeOf(app);
      fmt::print("{}", *shell == "bash" ? BashCompletion(tree) : ZshCompletion(tree));
      return Status();
    };
  });

  auto folder = std::make_shared<std::string>();
  CLI::App* manual = app.add_subcommand("manual", "write the manual pages");
  manual->add_option("FOLDER", *folder, "for a page of each command")->required();
  manual->callback([&app, &chosen, folder] {
    chosen.run = [&app, folder] { return WriteManual(app, *folder); };
  });
}

}  // namespace trainyard::cli
