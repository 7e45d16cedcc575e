// SPDX-License-Identifier: Apache-2.0
// What an option's number may be, with messages to read; the parser's own let "nan" through, or
// print the largest double with all its digits.
#pragma once

#include <fmt/format.h>
#include <CLI/App.hpp>
#include <CLI/Validators.hpp>

#include <optional>
#include <string>

#include "base/text.h"

namespace trainyard {

[[nodiscard]] inline CLI::Validator Finite() {
  return {[](const std::string& text) {
            return ToNumber(text) ? std::string() : fmt::format("{} is no finite number", text);
          },
          ""};
}

[[nodiscard]] inline CLI::Validator AtLeast(double least, bool least_itself, const char* name) {
  return {[=](const std::string& text) {
            const std::optional<double> number = ToNumber(text);
            return number && (*number > least || (least_itself && *number == least))
                       ? std::string()
                       : fmt::format("{}: expected a number {} {}", text,
                                     least_itself ? "of at least" : "above", least);
          },
          name};
}
[[nodiscard]] inline CLI::Validator Positive() { return AtLeast(0, false, "POSITIVE"); }
[[nodiscard]] inline CLI::Validator NonNegative() { return AtLeast(0, true, "NONNEGATIVE"); }

}  // namespace trainyard
