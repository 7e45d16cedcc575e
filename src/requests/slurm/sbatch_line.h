// SPDX-License-Identifier: Apache-2.0
// The words of an #SBATCH line, and which options of sbatch they are.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "requests/slurm/sbatch_options.h"

namespace trainyard::requests {

// Quotes keep blanks together, and '#' at the beginning of a word begins a remark.
[[nodiscard]] std::vector<std::string> WordsOf(std::string_view line);

// The option that a word begins, as getopt_long finds it: names may be cut short where only one
// option begins so.
struct BegunOption {
  const SbatchOption* option = nullptr;  // null: none does
  std::optional<std::string> value;      // that stands in the word
};
[[nodiscard]] BegunOption BeginOf(const std::string& word);

// "'--qoss' is no option of sbatch; did you mean '--qos'?"
[[nodiscard]] std::string UnknownSbatchOption(std::string_view word);

}  // namespace trainyard::requests
