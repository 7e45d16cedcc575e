// SPDX-License-Identifier: Apache-2.0
// The commands of the program as data, for what is made of them: manual pages, completion.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace trainyard::cli {

struct OptionText {
  std::vector<std::string> names;  // "-f", "--follow"; none: what follows the command
  std::string value;               // "TIME"; none: a flag
  std::string help;
  bool operator==(const OptionText&) const = default;
};

struct CommandText {
  std::string path;  // "trainyard trace convert"
  std::string help;
  std::string footer;
  std::vector<OptionText> options;
  std::vector<CommandText> commands;
  bool operator==(const CommandText&) const = default;
};

// All that users may see, in their order.
[[nodiscard]] CommandText TreeOf(const CLI::App& app);

}  // namespace trainyard::cli
