// SPDX-License-Identifier: Apache-2.0
#include "requests/slurm/output_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace trainyard::requests {
namespace {

struct Placeholder {
  char letter = 0;
  bool number = false;        // a width pads it
  std::string_view value{};   // for the shell, between double quotes
  std::string_view behind{};  // what follows it, without a width
  bool differs = false;       // between the tasks of an array
};

constexpr std::string_view kIndex = "${TRAINYARD_ARRAY_TASK_ID:-4294967294}";
constexpr std::array kPlaceholders{
    Placeholder{'j', true, "${TRAINYARD_JOB}", "", true},
    Placeholder{'J', true, "${TRAINYARD_JOB}", "", true},
    Placeholder{'A', true, "${TRAINYARD_ARRAY_JOB_ID:-$TRAINYARD_JOB}"},
    Placeholder{'a', true, kIndex, "", true},
    Placeholder{'b', true, "$((${TRAINYARD_ARRAY_TASK_ID:-4294967294} % 10))"},
    Placeholder{'x', false, "${SLURM_JOB_NAME}"},
    Placeholder{'u', false, "$(id -un)"},
    Placeholder{'N', false, "$(uname -n | cut -d. -f1)"},
    Placeholder{'n', true, "${NODE_RANK:-0}"},  // a script that runs once has neither
    Placeholder{'t', true, "${RANK:-0}"},
    Placeholder{'s', false, "batch"},
    Placeholder{'%', false, "%"}};

const Placeholder* Find(char letter) {
  const auto* const found =
      std::find_if(kPlaceholders.begin(), kPlaceholders.end(),
                   [letter](const Placeholder& one) { return one.letter == letter; });
  return found == kPlaceholders.end() ? nullptr : found;
}

// Where the letter of a placeholder stands that begins with '%' there; its width before it.
std::size_t LetterAt(std::string_view pattern, std::size_t at) {
  return std::min(pattern.find_first_not_of("0123456789", at + 1), pattern.size());
}

// To 10 places, as in Slurm. A width of 0 or 1 pads nothing.
int WidthOf(std::string_view digits) {
  constexpr int kMost = 10;
  int width = 0;
  for (const char digit : digits) {
    width = std::min(width * 10 + (digit - '0'), kMost);
  }
  return width;
}

// A character between double quotes of the shell.
std::string Escaped(char c) {
  const bool means_something = c == '"' || c == '\\' || c == '$' || c == '`';
  return means_something ? std::string{'\\', c} : std::string(1, c);
}

Error NoPlaceholder(std::string_view placeholder) {
  return InvalidArgument(fmt::format(
      "'{}' is no placeholder; expected %j %J %A %a %b %x %u %N %n %t %s or %%, with a width "
      "(%4a) or without",
      placeholder));
}

}  // namespace

Result<std::string> OutputWord(std::string_view pattern) {
  std::string word = "\"";
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      word += Escaped(pattern[i]);
      continue;
    }
    const std::size_t letter = LetterAt(pattern, i);
    const Placeholder* const known = letter < pattern.size() ? Find(pattern[letter]) : nullptr;
    if (known == nullptr) {
      return NoPlaceholder(pattern.substr(i, letter + 1 - i));
    }
    const int width = WidthOf(pattern.substr(i + 1, letter - i - 1));
    word += known->number && width > 1 ? fmt::format("$(printf %0{}d {})", width, known->value)
                                       : std::string(known->value);
    word += known->behind;
    i = letter;
  }
  return word + "\"";
}

bool DiffersByTask(std::string_view pattern) {
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      continue;
    }
    i = LetterAt(pattern, i);
    const Placeholder* const known = i < pattern.size() ? Find(pattern[i]) : nullptr;
    if (known != nullptr && known->differs) {
      return true;
    }
  }
  return pattern.starts_with("/dev/");
}

}  // namespace trainyard::requests
