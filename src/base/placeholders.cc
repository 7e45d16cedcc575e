// SPDX-License-Identifier: Apache-2.0
#include "base/placeholders.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace trainyard::base {

Result<std::string> Fill(std::string_view text, const Placeholders& placeholders) {
  constexpr std::string_view kHint = "{{ and }} stand for braces";
  std::string filled;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c != '{' && c != '}') {
      filled += c;
      continue;
    }
    if (at + 1 < text.size() && text[at + 1] == c) {
      filled += c;
      ++at;
      continue;
    }
    const std::size_t end = text.find('}', at);
    if (c == '}' || end == std::string_view::npos) {
      return InvalidArgument(fmt::format(
          "'{}' has a '{}' that belongs to no placeholder; expected one such as {{batch}}; {}",
          text, c, kHint));
    }
    const std::string_view name = text.substr(at + 1, end - at - 1);
    const auto found = std::find_if(placeholders.begin(), placeholders.end(),
                                    [name](const auto& one) { return one.first == name; });
    if (found == placeholders.end()) {
      std::vector<std::string_view> names;
      for (const auto& one : placeholders) {
        names.push_back(one.first);
      }
      return InvalidArgument(
          fmt::format("'{}': {}; {}", text, UnknownName("placeholder", name, names), kHint));
    }
    filled += found->second;
    at = end;
  }
  return filled;
}

}  // namespace trainyard::base
