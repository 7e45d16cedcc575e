// SPDX-License-Identifier: Apache-2.0
// Options of a named component: "las:quantum=3600" is the component `las` with one option.
//
// A component describes its options in a table (OptionSpec), from which the program checks what
// the user wrote, prints `trainyard policies`, and fills in defaults. The factory of the component
// (ComponentEntry::make) is given the checked values (Options), reads each once and keeps it as a
// member.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainyard/status.h"

namespace trainyard {

// One option. The texts must outlive the catalogue (ComponentEntry): string literals do.
struct OptionSpec {
  enum class Kind : unsigned char {
    kNumber,   // a number >= 0
    kNumbers,  // one or more numbers >= 0 separated by '/'
    kChoice,   // one of `choices`
    kText,     // anything; the factory checks it
  };
  std::string_view key;  // each once per component
  Kind kind = Kind::kNumber;
  // The default, as a user would write it, of the same kind. A number that is a time is in seconds
  // here, without a unit.
  std::string_view fallback;
  // One line for users. A kNumber whose help has the word "seconds" is a time: users may give it
  // with a unit.
  std::string_view help;
  std::string_view choices{};  // of kChoice, separated by '|'
};

// A name with its options as the user wrote them, in that order.
struct NamedOptions {
  std::string name;
  std::vector<std::pair<std::string, std::string>> values;
};
// Parses "name" or "name:key=value,key=value", with ',' or ';' between options except within
// brackets, and blanks around names, keys and values left out. Whether there is such a component is
// not looked at. Errors, all InvalidArgument: no name, several names, an option without a key or
// '='.
[[nodiscard]] Result<NamedOptions> ParseNamedOptions(std::string_view text);

// Checked values: every key of the table has a value of its kind, and there are no other keys.
class Options {
 public:
  // The values given, the last one of each key, and the defaults of the others, which are not
  // checked here (the catalogue does so when a plug-in is loaded). A time may be given with a unit,
  // as "90s" or "2h". `what` names the component in messages ("policy 'las'"). Errors, all
  // InvalidArgument: a key that is not in `specs`, a value of another kind. Only tests of a
  // component need to call it.
  [[nodiscard]] static Result<Options> Make(std::span<const OptionSpec> specs,
                                            const NamedOptions& given, std::string_view what);
  // The value of an option. REQUIRES, of all four: `key` is in the table, with that kind (Flag:
  // kNumber; Text: any kind); otherwise the program ends. O(log keys), and parsed at each call.

  // kNumber; of a time, in seconds (FromSeconds makes a Duration of it).
  [[nodiscard]] double Number(std::string_view key) const;
  // kNumber; anything but 0 is true.
  [[nodiscard]] bool Flag(std::string_view key) const { return Number(key) != 0; }
  // kNumbers; at least one, in the order given.
  [[nodiscard]] std::vector<double> Numbers(std::string_view key) const;
  // The text of any kind, valid as long as the Options.
  [[nodiscard]] const std::string& Text(std::string_view key) const;

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace trainyard
