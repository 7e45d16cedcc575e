// SPDX-License-Identifier: Apache-2.0
// Options of a named component: "las:quantum=3600" is the component `las` with one option.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainyard/status.h"

namespace trainyard {

struct OptionSpec {
  enum class Kind : unsigned char {
    kNumber,   // a number >= 0
    kNumbers,  // numbers >= 0 separated by '/'
    kChoice,   // one of `choices`, separated by '|'
    kText,
  };
  std::string_view key;
  Kind kind = Kind::kNumber;
  std::string_view fallback;  // the default, in the same form
  std::string_view help;
  std::string_view choices{};
};

// A name with its options as the user wrote them.
struct NamedOptions {
  std::string name;
  std::vector<std::pair<std::string, std::string>> values;
};
// Parses "name", "name:key=value,key=value" (',' or ';' between options). Errors: no name or
// several, an option without '='.
[[nodiscard]] Result<NamedOptions> ParseNamedOptions(std::string_view text);

// Checked values: every key is known and every value has its kind.
class Options {
 public:
  // The values given, the last one of each key, and the defaults of the others. A number that is a
  // time by its help
  // ("seconds ...") may be given with a unit, as "90s" or "2h". `what` names the component in
  // messages ("policy 'las'"). Errors: unknown keys, values of another kind.
  [[nodiscard]] static Result<Options> Make(std::span<const OptionSpec> specs,
                                            const NamedOptions& given, std::string_view what);
  // REQUIRES, of all: `key` is in the specs, with that kind (Flag: kNumber; Text: any). O(log keys)
  // and parsed at each call: components keep the values as members.
  [[nodiscard]] double Number(std::string_view key) const;
  [[nodiscard]] bool Flag(std::string_view key) const { return Number(key) != 0; }
  [[nodiscard]] std::vector<double> Numbers(std::string_view key) const;
  [[nodiscard]] const std::string& Text(std::string_view key) const;

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace trainyard
