// SPDX-License-Identifier: Apache-2.0
// Options from a TOML file (--config): a table for each command, a key for each of its options.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <string>
#include <vector>

namespace trainyard::cli {

// Takes the place of the parser's own reader, which calls whatever it cannot read INI and knows no
// lines. Sets the options of the program's commands; options of the command line prevail.
class ConfigFile final : public CLI::ConfigBase {
 public:
  // The program must outlive it, and have the option --config.
  explicit ConfigFile(CLI::App& program) : program_(program) {}
  // Nothing is left to set: an empty list. Throws a CLI::ConfigError "FILE:LINE: what is wrong".
  [[nodiscard]] std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

 private:
  CLI::App& program_;
};

}  // namespace trainyard::cli
