// SPDX-License-Identifier: Apache-2.0
#include "cli/live/config/config_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/text.h"
#include "io/toml.h"

namespace trainyard::cli {
namespace {

[[noreturn]] void Refuse(const std::string& message) {
  throw CLI::ConfigError(message, CLI::ExitCodes::ConfigError);
}

// One table of the file and the command whose options it has.
class Section {
 public:
  Section(const std::string& path, CLI::App& command, std::string name)
      : path_(path), command_(command), name_(std::move(name)) {}

  void Set(const io::TomlTable& table) const {  // NOLINT(misc-no-recursion)
    for (const io::TomlEntry& entry : table.entries) {
      if (const io::TomlTable* const inner = entry.value.table()) {
        Section(path_, CommandOf(entry), name_.empty() ? entry.key : name_ + "." + entry.key)
            .Set(*inner);
      } else {
        SetOption(entry);
      }
    }
  }

 private:
  [[noreturn]] void RefuseAt(int line, std::string_view what) const {
    Refuse(fmt::format("{}:{}: {}", path_, line, what));
  }

  [[nodiscard]] CLI::App& CommandOf(const io::TomlEntry& entry) const {
    std::vector<std::string> names;
    for (CLI::App* command : command_.get_subcommands(nullptr)) {
      if (command->get_name() == entry.key) {
        return *command;
      }
      if (!command->get_group().empty()) {  // hidden commands have none
        names.push_back(command->get_name());
      }
    }
    RefuseAt(entry.line,
             Unknown(name_.empty() ? "table" : "table in [" + name_ + "]", entry.key, names));
  }

  [[nodiscard]] static std::string Unknown(std::string_view what, const std::string& given,
                                           const std::vector<std::string>& names) {
    const std::vector<std::string_view> known(names.begin(), names.end());
    return base::UnknownName(what, given, known);
  }

  // What a key of this table may be.
  [[nodiscard]] std::vector<std::string> Keys() const {
    std::vector<std::string> keys;
    for (const CLI::Option* option : command_.get_options()) {
      const bool own = option != command_.get_help_ptr() && option != command_.get_config_ptr() &&
                       option != command_.get_version_ptr();
      for (const std::string& name : option->get_lnames()) {
        if (own && option->get_configurable()) {
          keys.push_back(name);
        }
      }
    }
    return keys;
  }

  void SetOption(const io::TomlEntry& entry) const {
    const std::vector<std::string> keys = Keys();
    if (std::find(keys.begin(), keys.end(), entry.key) == keys.end()) {
      const std::string where =
          name_.empty() ? "key outside of the tables" : "key in [" + name_ + "]";
      RefuseAt(entry.line, Unknown(where, entry.key, keys));
    }
    CLI::Option& option = *command_.get_option("--" + entry.key);
    if (!option.empty()) {
      return;  // the command line has it
    }
    const bool flag = option.get_expected_min() == 0;
    const std::vector<std::string> texts = flag ? std::vector{FlagOf(entry)} : TextsOf(entry);
    try {
      if (flag) {
        option.add_result(option.get_flag_value(entry.key, texts.front()));
      } else {
        option.add_result(texts);
        option.run_callback();  // checks the value
      }
    } catch (const CLI::ParseError& error) {
      RefuseAt(entry.line, error.what());
    }
  }

  [[nodiscard]] std::string FlagOf(const io::TomlEntry& entry) const {
    const bool* const flag = std::get_if<bool>(&entry.value.value);
    if (flag == nullptr) {
      RefuseAt(entry.line,
               fmt::format("'{}' is no truth value; expected true or false", entry.key));
    }
    return *flag ? "true" : "false";
  }

  [[nodiscard]] std::vector<std::string> TextsOf(const io::TomlEntry& entry) const {
    std::vector<std::string> texts;
    const auto add = [&](const io::TomlValue& value) {
      const std::optional<std::string> text = value.AsText();
      if (!text) {
        RefuseAt(value.line,
                 fmt::format("'{}' holds a list or table; expected a text or a number", entry.key));
      }
      texts.push_back(*text);
    };
    if (const std::vector<io::TomlValue>* const list = entry.value.list()) {
      std::for_each(list->begin(), list->end(), add);
    } else {
      add(entry.value);
    }
    return texts;
  }

  const std::string& path_;
  CLI::App& command_;
  const std::string name_;  // as in the file, without brackets; empty: outside of all tables
};

}  // namespace

std::vector<CLI::ConfigItem> ConfigFile::from_config(std::istream& input) const {
  const std::string path = program_.get_config_ptr()->as<std::string>();
  const std::string text((std::istreambuf_iterator<char>(input)), std::istreambuf_iterator<char>());
  const Result<io::TomlTable> table = io::ParseToml(path, text);
  if (!table.ok()) {
    Refuse(table.error().message);
  }
  Section(path, program_, "").Set(table.value());
  return {};
}

}  // namespace trainyard::cli
