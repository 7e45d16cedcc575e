// SPDX-License-Identifier: Apache-2.0
#include "base/name_list.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "base/try.h"

namespace trainyard::base {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::size_t kMostDigits = 18;

std::optional<std::int64_t> NumberOf(std::string_view digits) {
  std::int64_t number = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool plain = !digits.empty() && digits.size() <= kMostDigits &&
                     digits.find_first_not_of(kDigits) == std::string_view::npos;
  return plain && code == std::errc{} && end == digits.data() + digits.size()
             ? std::optional(number)
             : std::nullopt;
}

// With zeros before it, as many places as `like` has if that begins with one.
std::string Padded(std::int64_t number, std::string_view like) {
  std::string text = std::to_string(number);
  if (like.starts_with('0') && text.size() < like.size()) {
    text.insert(0, like.size() - text.size(), '0');
  }
  return text;
}

Error Bad(std::string_view list, std::string_view what) {
  return InvalidArgument("'" + std::string(list) + "' " + std::string(what) +
                         "; expected names with commas between them, with ranges in brackets or "
                         "without: n0,n1 or n[0-2,7]");
}

// The parts of a list, at the commas outside of brackets.
Result<std::vector<std::string_view>> PartsOf(std::string_view list) {
  std::vector<std::string_view> parts;
  bool inside = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] == (inside ? '[' : ']')) {
      return Bad(list, inside ? "has a bracket in a bracket" : "has a bracket that nothing opens");
    }
    inside = list[i] == '[' || (inside && list[i] != ']');
    if (list[i] == ',' && !inside) {
      parts.push_back(list.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  if (inside) {
    return Bad(list, "has a bracket that nothing closes");
  }
  parts.push_back(list.substr(begin));
  return parts;
}

// "0-2,7", each between `before` and `after`.
Status AddRanges(std::string_view list, std::string_view ranges, const std::string& before,
                 const std::string& after, std::vector<std::string>& names) {
  for (const std::string_view range : Split(ranges, ",")) {
    const std::size_t dash = range.find('-');
    const std::string_view from = range.substr(0, dash);
    const auto first = NumberOf(from);
    const auto last = dash == std::string_view::npos ? first : NumberOf(range.substr(dash + 1));
    if (!first || !last || *last < *first) {
      return Bad(list, "has '" + std::string(range) + "' in brackets, which is no range");
    }
    for (std::int64_t number = *first; number <= *last; ++number) {
      if (names.size() >= kMostListedNames) {
        return Bad(list, "has more than " + std::to_string(kMostListedNames) + " names");
      }
      std::string& name = names.emplace_back(before);
      name += Padded(number, from);
      name += after;
    }
  }
  return {};
}

// "n07": "n" and 2 digits.
std::size_t StemSize(std::string_view name) {
  const std::size_t last = name.find_last_not_of(kDigits);
  return std::max(last == std::string_view::npos ? 0 : last + 1,
                  name.size() > kMostDigits ? name.size() - kMostDigits : 0);
}

// Names that begin alike and end in numbers.
struct Folded {
  std::string ranges;
  std::size_t count = 0;
};

// Those from the front of `names` on that are `stem` and a number.
Folded FoldNumbers(std::span<const std::string> names, std::string_view stem) {
  const auto number_at = [&](std::size_t at) {
    const std::string_view name = names[at];
    return name.substr(0, StemSize(name)) == stem ? NumberOf(name.substr(stem.size()))
                                                  : std::nullopt;
  };
  Folded folded;
  std::size_t& end = folded.count;
  while (end < names.size() && number_at(end)) {
    // A run of numbers, each one more than the one before and as it would be expanded.
    const std::string_view from = std::string_view(names[end]).substr(stem.size());
    const std::int64_t begin = *number_at(end);
    std::int64_t last = begin;
    ++end;
    while (end < names.size() && number_at(end) == last + 1 &&
           std::string_view(names[end]).substr(stem.size()) == Padded(last + 1, from)) {
      ++last;
      ++end;
    }
    folded.ranges += folded.ranges.empty() ? "" : ",";
    folded.ranges += from;
    folded.ranges += last == begin ? "" : "-" + Padded(last, from);
  }
  return folded;
}

}  // namespace

Result<std::vector<std::string>> ExpandNames(std::string_view list) {
  std::vector<std::string> names;
  ASSIGN_OR_RETURN(const std::vector<std::string_view> parts, PartsOf(list));
  for (const std::string_view part : parts) {
    if (part.empty()) {
      return Bad(list, "has an empty name");
    }
    const std::size_t open = part.find('[');
    if (open == std::string_view::npos) {
      names.emplace_back(part);
    } else {
      const std::size_t close = part.find(']', open);
      const std::string_view rest = part.substr(close + 1);
      if (rest.find('[') != std::string_view::npos) {
        return Bad(list, "has two brackets in one name");
      }
      RETURN_IF_ERROR(AddRanges(list, part.substr(open + 1, close - open - 1),
                                std::string(part.substr(0, open)), std::string(rest), names));
    }
  }
  return names;
}

std::string FoldNames(std::span<const std::string> names) {
  std::string list;
  for (std::size_t i = 0; i < names.size();) {
    const std::string_view first = names[i];
    const std::string_view stem = first.substr(0, StemSize(first));
    const auto [ranges, count] = FoldNumbers(names.subspan(i), stem);
    list += list.empty() ? "" : ",";
    list += count > 1 ? std::string(stem) + "[" + ranges + "]" : std::string(first);
    i += std::max<std::size_t>(count, 1);
  }
  return list;
}

bool ComesBefore(std::string_view a, std::string_view b) {
  const auto key = [](std::string_view name) {
    const std::size_t stem = StemSize(name);
    return std::tuple(name.substr(0, stem), NumberOf(name.substr(stem)).value_or(-1), name);
  };
  return key(a) < key(b);
}

}  // namespace trainyard::base
