// SPDX-License-Identifier: Apache-2.0
// Small text functions that messages and option lists need.
#pragma once

#include <charconv>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace trainyard::base {

// The known name closest to `given` by edit distance, capitals or not, or empty where none is near
// enough to be what the user meant (more than a third of the letters differ).
[[nodiscard]] std::string_view NearestName(std::string_view given,
                                           std::span<const std::string_view> known);

// "unknown <what> '<given>'; did you mean 'x'? known: a, b, c"
[[nodiscard]] std::string UnknownName(std::string_view what, std::string_view given,
                                      std::span<const std::string_view> known);

[[nodiscard]] std::string Join(std::span<const std::string_view> parts, std::string_view between);
// Empty parts are kept; an empty text has one empty part.
[[nodiscard]] std::vector<std::string_view> Split(std::string_view text, std::string_view at_any);
[[nodiscard]] std::string_view Trim(std::string_view text);
// The whole text as a decimal number.
[[nodiscard]] std::optional<double> ToNumber(std::string_view text);
// The whole text as an integer that the type can hold: digits, after a '-' if the type is signed.
template <typename Integer>
[[nodiscard]] std::optional<Integer> ToInteger(std::string_view text) {
  Integer number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc{} && end == text.data() + text.size() ? std::optional(number)
                                                                 : std::nullopt;
}

// A time: a number of units of `unit` seconds, or with units of its own, the largest first: "90s",
// "15m", "1h30m", "1d". The result is in units of `unit` seconds. Nothing: it is none.
[[nodiscard]] std::optional<double> ToSpan(std::string_view text, double unit = 1);

// Every occurrence of `what` replaced; what `by` contains is not looked at again.
[[nodiscard]] std::string ReplaceAll(std::string text, std::string_view what, std::string_view by);

// About three digits, for reading: "350ms", "12.4s", "43m10s", "2h05m", "4d04h".
[[nodiscard]] std::string ShortDuration(double seconds);

// "2026-11-25T13:00:00Z" for seconds since 1970, as logs and messages have it.
[[nodiscard]] std::string UtcText(double unix_seconds);
// The same for now.
[[nodiscard]] std::string UtcNow();

// A name for a file or folder: letters, digits and a few signs stay, the rest becomes '-'.
[[nodiscard]] std::string FileNameOf(std::string_view text);

}  // namespace trainyard::base
