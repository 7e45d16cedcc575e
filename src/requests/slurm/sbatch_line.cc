// SPDX-License-Identifier: Apache-2.0
#include "requests/slurm/sbatch_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace trainyard::requests {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// Whether it opens a quote, or closes the one that is open.
bool IsQuote(char c, char open) { return open != 0 ? c == open : c == '"' || c == '\''; }

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

LineWords WordsOf(std::string_view line) {
  LineWords read;
  std::string word;
  bool any = false;
  bool escaped = false;
  char& quote = read.open_quote;
  const auto end_word = [&] {
    if (std::exchange(any, false)) {
      read.words.push_back(std::exchange(word, {}));
    }
    escaped = false;
  };
  for (const char c : line) {
    if (quote == 0 && IsBlank(c)) {
      end_word();
      continue;
    }
    const bool literal = std::exchange(escaped, false);
    if (!literal && quote == 0 && c == '#') {
      break;
    }
    any = true;
    if (!literal && c == '\\') {
      escaped = true;
    } else if (!literal && IsQuote(c, quote)) {
      quote = quote != 0 ? '\0' : c;
    } else {
      word += c;
    }
  }
  end_word();
  return read;
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
