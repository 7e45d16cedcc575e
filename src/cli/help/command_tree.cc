// SPDX-License-Identifier: Apache-2.0
#include "cli/help/command_tree.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace trainyard::cli {
namespace {

OptionText TextOf(const CLI::Option& option) {
  OptionText text{.names = {}, .value = {}, .help = option.get_description()};
  for (const std::string& name : option.get_snames()) {
    text.names.push_back("-" + name);
  }
  for (const std::string& name : option.get_lnames()) {
    text.names.push_back("--" + name);
  }
  if (text.names.empty()) {
    text.value = option.get_name(true);
  } else if (option.get_items_expected_max() > 0) {
    text.value = option.get_type_name().empty() ? "VALUE" : option.get_type_name();
  }
  return text;
}

CommandText TreeAt(const CLI::App& app, const std::string& path) {  // NOLINT(misc-no-recursion)
  CommandText text{.path = path,
                   .help = app.get_description(),
                   .footer = app.get_footer(),
                   .options = {},
                   .commands = {}};
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) {  // hidden ones have none
      text.options.push_back(TextOf(*option));
    }
  }
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (!command->get_group().empty()) {
      text.commands.push_back(TreeAt(*command, path + " " + command->get_name()));
    }
  }
  return text;
}

}  // namespace

CommandText TreeOf(const CLI::App& app) { return TreeAt(app, app.get_name()); }

}  // namespace trainyard::cli
