// SPDX-License-Identifier: Apache-2.0
#include "trainyard/options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

#include "base/check.h"
#include "base/text.h"

namespace trainyard {
namespace {

// Options that are times say so: "seconds ...", "GPU-seconds".
bool IsTime(const OptionSpec& spec) { return spec.help.find("seconds") != std::string_view::npos; }

// "1h" of an option that is a time as its seconds; any other text as it is.
std::string InSeconds(const OptionSpec& spec, const std::string& value) {
  const bool number = spec.kind == OptionSpec::Kind::kNumber && base::ToNumber(value).has_value();
  if (spec.kind != OptionSpec::Kind::kNumber || number || !IsTime(spec)) {
    return value;
  }
  const std::optional<double> seconds = base::ToSpan(value);
  if (!seconds) {
    return value;
  }
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), *seconds);
  return {digits.data(), end.ptr};
}

std::optional<std::string> WhatIsWrong(const OptionSpec& spec, std::string_view value) {
  const auto is_number = [](std::string_view text) {
    const std::optional<double> number = base::ToNumber(text);
    return number.has_value() && *number >= 0;
  };
  switch (spec.kind) {
    case OptionSpec::Kind::kText:
      return std::nullopt;
    case OptionSpec::Kind::kNumber:
      return is_number(value)
                 ? std::nullopt
                 : std::optional<std::string>(IsTime(spec)
                                                  ? "seconds >= 0, or a time such as 90s, 15m or 2h"
                                                  : "a number >= 0");
    case OptionSpec::Kind::kNumbers: {
      const std::vector<std::string_view> parts = base::Split(value, "/");
      const bool good = std::all_of(parts.begin(), parts.end(), is_number);
      return good ? std::nullopt : std::optional<std::string>("numbers >= 0 separated by '/'");
    }
    case OptionSpec::Kind::kChoice: {
      const std::vector<std::string_view> choices = base::Split(spec.choices, "|");
      const bool good = std::find(choices.begin(), choices.end(), value) != choices.end();
      return good ? std::nullopt
                  : std::optional<std::string>("one of " + base::Join(choices, ", "));
    }
  }
  return std::nullopt;
}

Error BadValue(std::string_view what, const std::string& key, const std::string& value,
               const std::string& expected) {
  return InvalidArgument(std::string(what) + ": option '" + key + "' is '" + value +
                         "'; expected " + expected);
}

// At ',' and ';', but not within "(...)".
std::vector<std::string_view> SplitOutsideBrackets(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  int open = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    open += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (open <= 0 && (text[i] == ',' || text[i] == ';')) {
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  parts.push_back(text.substr(begin));
  return parts;
}

}  // namespace

Result<NamedOptions> ParseNamedOptions(std::string_view text) {
  const std::size_t colon = text.find(':');
  NamedOptions named{.name = std::string(base::Trim(text.substr(0, colon))), .values = {}};
  if (named.name.empty()) {
    return InvalidArgument("'" + std::string(text) +
                           "' has no name; expected NAME[:key=value,...]");
  }
  if (named.name.find(',') != std::string::npos) {
    return InvalidArgument(
        "'" + std::string(text) +
        "' names more than one; expected one name, with its options behind a "
        "colon: NAME[:key=value,...]. `trainyard compare` runs several policies, "
        "each with a --policy of its own");
  }
  if (colon == std::string_view::npos) {
    return named;
  }
  for (const std::string_view part : SplitOutsideBrackets(text.substr(colon + 1))) {
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos || base::Trim(part.substr(0, equals)).empty()) {
      return InvalidArgument("'" + std::string(part) + "' in '" + std::string(text) +
                             "' is no option; expected key=value");
    }
    const std::string_view key = base::Trim(part.substr(0, equals));
    if (std::any_of(named.values.begin(), named.values.end(),
                    [key](const auto& other) { return other.first == key; })) {
      return InvalidArgument("option '" + std::string(key) + "' is twice in '" + std::string(text) +
                             "'; expected it once");
    }
    named.values.emplace_back(key, base::Trim(part.substr(equals + 1)));
  }
  return named;
}

Result<Options> Options::Make(std::span<const OptionSpec> specs, const NamedOptions& given,
                              std::string_view what) {
  Options options;
  std::vector<std::string_view> known;
  for (const OptionSpec& spec : specs) {
    known.push_back(spec.key);
    options.values_[std::string(spec.key)] = std::string(spec.fallback);
  }
  for (const auto& [key, value] : given.values) {
    const auto spec =
        std::find_if(specs.begin(), specs.end(),
                     [&wanted = key](const OptionSpec& s) { return s.key == wanted; });
    if (spec == specs.end()) {
      return InvalidArgument(std::string(what) + ": " + base::UnknownName("option", key, known));
    }
    const std::string text = InSeconds(*spec, value);
    if (const std::optional<std::string> expected = WhatIsWrong(*spec, text)) {
      return BadValue(what, key, value, *expected);
    }
    options.values_[key] = text;
  }
  return options;
}

const std::string& Options::Text(std::string_view key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) {
    std::fprintf(stderr, "option '%.*s' is not in the component's table of options\n",
                 static_cast<int>(key.size()), key.data());
  }
  CHECK(found != values_.end());
  return found->second;
}

double Options::Number(std::string_view key) const {
  const std::optional<double> number = base::ToNumber(Text(key));
  CHECK(number.has_value());
  return *number;
}

std::vector<double> Options::Numbers(std::string_view key) const {
  std::vector<double> numbers;
  for (const std::string_view part : base::Split(Text(key), "/")) {
    const std::optional<double> number = base::ToNumber(part);
    CHECK(number.has_value());
    numbers.push_back(*number);
  }
  return numbers;
}

}  // namespace trainyard
