// SPDX-License-Identifier: Apache-2.0
// What an option's number or text may be, with messages to read; the parser's own let "nan"
// through, or print the largest double with all its digits.
#pragma once

#include <fmt/format.h>
#include <CLI/App.hpp>
#include <CLI/Validators.hpp>

#include <cmath>
#include <optional>
#include <string>

#include "base/text.h"
#include "requests/slurm/slurm_time.h"

namespace trainyard::cli {

// Of a text that an option needs: an empty one comes of a variable that is not set.
[[nodiscard]] inline CLI::Validator NotEmpty() {
  return {[](const std::string& text) {
            return text.empty() ? std::string("the value is empty; expected one, or no such option")
                                : std::string();
          },
          ""};
}
[[nodiscard]] inline CLI::Validator Finite() {
  return {[](const std::string& text) {
            return base::ToNumber(text) ? std::string()
                                        : fmt::format("{} is no finite number", text);
          },
          ""};
}

[[nodiscard]] inline CLI::Validator AtLeast(double least, bool least_itself, const char* name) {
  return {[=](const std::string& text) {
            const std::optional<double> number = base::ToNumber(text);
            return number && (*number > least || (least_itself && *number == least))
                       ? std::string()
                       : fmt::format("{}: expected a number {} {}", text,
                                     least_itself ? "of at least" : "above", least);
          },
          name};
}
// For transform(): a time with units as a number of units of `unit` seconds ("90s", "15m",
// "1h30m", "1:30:00").
[[nodiscard]] inline CLI::Validator Span(double unit = 1) {
  return {[unit](std::string& text) {
            std::optional<double> span = base::ToSpan(text, unit);
            if (const requests::TimeReading slurm = requests::ReadSpan(text); !span) {
              if (!slurm.seconds) {
                return fmt::format(
                    "'{}' is no time{}{}; expected a number, or 90s, 15m, 2h, 1h30m, 1d", text,
                    slurm.why.empty() ? "" : ": ", slurm.why);
              }
              span = *slurm.seconds / unit;
            }
            text = fmt::format("{}", *span);
            return std::string();
          },
          "TIME"};
}
// For transform(): "1e6" as the digits that the parser takes for an integer.
[[nodiscard]] inline CLI::Validator WholeNumber() {
  return {[](std::string& text) {
            constexpr double kMostExact = 9'007'199'254'740'992;
            const std::optional<double> number = base::ToNumber(text);
            // The parser knows hexadecimal digits.
            if (!text.starts_with("0x") && (!number || *number != std::floor(*number))) {
              return fmt::format("'{}' is no whole number; expected digits, such as 100000 or 1e5",
                                 text);
            }
            if (number && std::abs(*number) <= kMostExact &&
                text.find_first_of("eE.") != std::string::npos) {
              text = fmt::format("{:.0f}", *number);
            }
            return std::string();
          },
          ""};
}
// The same for numbers without a sign, of which the parser would take -1 for the greatest.
[[nodiscard]] inline CLI::Validator Unsigned() {
  const CLI::Validator whole = WholeNumber();
  return {[whole](std::string& text) {
            return text.starts_with('-')
                       ? fmt::format("{}: expected a whole number of at least 0", text)
                       : whole(text);
          },
          ""};
}
[[nodiscard]] inline CLI::Validator Positive() { return AtLeast(0, false, "POSITIVE"); }
[[nodiscard]] inline CLI::Validator NonNegative() { return AtLeast(0, true, "NONNEGATIVE"); }

}  // namespace trainyard::cli
