// SPDX-License-Identifier: Apache-2.0
#include "trainyard/options.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"

namespace trainyard {
namespace {

std::optional<std::string> WhatIsWrong(const OptionSpec& spec, std::string_view value) {
  const auto is_number = [](std::string_view text) {
    const std::optional<double> number = ToNumber(text);
    return number.has_value() && *number >= 0;
  };
  switch (spec.kind) {
    case OptionSpec::Kind::kText:
      return std::nullopt;
    case OptionSpec::Kind::kNumber:
      return is_number(value) ? std::nullopt : std::optional<std::string>("a number >= 0");
    case OptionSpec::Kind::kNumbers: {
      const std::vector<std::string_view> parts = Split(value, "/");
      const bool good = std::all_of(parts.begin(), parts.end(), is_number);
      return good ? std::nullopt : std::optional<std::string>("numbers >= 0 separated by '/'");
    }
    case OptionSpec::Kind::kChoice: {
      const std::vector<std::string_view> choices = Split(spec.choices, "|");
      const bool good = std::find(choices.begin(), choices.end(), value) != choices.end();
      return good ? std::nullopt : std::optional<std::string>("one of " + Join(choices, ", "));
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
  NamedOptions named{.name = std::string(Trim(text.substr(0, colon))), .values = {}};
  if (named.name.empty()) {
    return InvalidArgument("'" + std::string(text) +
                           "' has no name; expected NAME[:key=value,...]");
  }
  if (colon == std::string_view::npos) {
    return named;
  }
  for (const std::string_view part : SplitOutsideBrackets(text.substr(colon + 1))) {
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos || Trim(part.substr(0, equals)).empty()) {
      return InvalidArgument("'" + std::string(part) + "' in '" + std::string(text) +
                             "' is no option; expected key=value");
    }
    named.values.emplace_back(Trim(part.substr(0, equals)), Trim(part.substr(equals + 1)));
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
      return InvalidArgument(std::string(what) + ": " + UnknownName("option", key, known));
    }
    if (const std::optional<std::string> expected = WhatIsWrong(*spec, value)) {
      return BadValue(what, key, value, *expected);
    }
    options.values_[key] = value;
  }
  return options;
}

const std::string& Options::Text(std::string_view key) const {
  const auto found = values_.find(key);
  CHECK(found != values_.end());
  return found->second;
}

double Options::Number(std::string_view key) const {
  const std::optional<double> number = ToNumber(Text(key));
  CHECK(number.has_value());
  return *number;
}

std::vector<double> Options::Numbers(std::string_view key) const {
  std::vector<double> numbers;
  for (const std::string_view part : Split(Text(key), "/")) {
    const std::optional<double> number = ToNumber(part);
    CHECK(number.has_value());
    numbers.push_back(*number);
  }
  return numbers;
}

}  // namespace trainyard
