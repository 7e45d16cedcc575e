// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include <cctype>
#include <cstddef>

namespace trainyard::base {
namespace {

// U+2028 to U+202E and U+2066 to U+2069 in UTF-8.
bool IsSteeringMark(const std::string& text, std::size_t at) {
  if (text.size() - at < 3 || text[at] != '\xE2') {
    return false;
  }
  const auto last = static_cast<unsigned char>(text[at + 2]);
  return (text[at + 1] == '\x80' && last >= 0xA8 && last <= 0xAE) ||
         (text[at + 1] == '\x81' && last >= 0xA6 && last <= 0xA9);
}

}  // namespace

std::string Printable(std::string text) {
  std::size_t written = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool mark = IsSteeringMark(text, i);
    const bool control = std::iscntrl(static_cast<unsigned char>(text[i])) != 0;
    text[written++] = mark || control ? '?' : text[i];
    i += mark ? 2 : 0;
  }
  text.resize(written);
  return text;
}

}  // namespace trainyard::base
