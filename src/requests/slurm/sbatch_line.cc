// SPDX-License-Identifier: Apache-2.0
#include "requests/slurm/sbatch_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace trainyard::requests {
namespace {

const SbatchOption* OptionBeginningWith(std::string_view name) {
  if (const SbatchOption* const exact = SbatchOptionNamed(name); exact != nullptr) {
    return exact;
  }
  const SbatchOption* found = nullptr;
  for (const SbatchOption& option : SbatchOptions()) {
    if (!name.empty() && option.name.starts_with(name)) {
      if (found != nullptr) {
        return nullptr;
      }
      found = &option;
    }
  }
  return found;
}

}  // namespace

std::vector<std::string> WordsOf(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool any = false;
  char quote = 0;
  for (const char c : line) {
    const bool blank = c == ' ' || c == '\t' || c == '\r';
    if (quote == 0 && c == '#' && !any) {
      break;
    }
    if (quote != 0 ? c == quote : c == '"' || c == '\'') {
      quote = quote != 0 ? '\0' : c;
      any = true;
    } else if (quote == 0 && blank) {
      if (any) {
        words.push_back(std::exchange(word, {}));
      }
      any = false;
    } else {
      word += c;
      any = true;
    }
  }
  if (any) {
    words.push_back(word);
  }
  return words;
}

BegunOption BeginOf(const std::string& word) {
  if (word.starts_with("--")) {
    const std::size_t equals = word.find('=');
    return {OptionBeginningWith(std::string_view(word).substr(2, equals - 2)),
            equals == std::string::npos ? std::nullopt : std::optional(word.substr(equals + 1))};
  }
  if (word.size() < 2 || word.front() != '-') {
    return {};
  }
  const std::size_t value = word.size() > 2 && word[2] == '=' ? 3 : 2;
  return {SbatchOptionOf(word[1]),
          word.size() > 2 ? std::optional(word.substr(value)) : std::nullopt};
}

std::string UnknownSbatchOption(std::string_view word) {
  std::vector<std::string> names;
  names.reserve(SbatchOptions().size());
  for (const SbatchOption& option : SbatchOptions()) {
    names.push_back(fmt::format("--{}", option.name));
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string_view near = word.starts_with("--") ? base::NearestName(word, known) : "";
  return fmt::format("'{}' is no option of sbatch{}", word,
                     near.empty() ? "; expected one of its manual page"
                                  : fmt::format("; did you mean '{}'?", near));
}

}  // namespace trainyard::requests
