// SPDX-License-Identifier: Apache-2.0
// The words of an #SBATCH line, and which options of sbatch they are.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "requests/slurm/sbatch_options.h"

namespace trainyard::requests {

struct LineWords {
  std::vector<std::string> words;
  char open_quote = 0;  // the quote that nothing closes; 0: there is none
};
// As sbatch reads a line: quotes keep blanks together, a backslash takes the character behind it as
// it is, and '#' outside of quotes begins a remark.
[[nodiscard]] LineWords WordsOf(std::string_view line);

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
