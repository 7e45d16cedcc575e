// SPDX-License-Identifier: Apache-2.0
#include "base/decimal.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>

namespace trainyard::base {
namespace {

constexpr std::uint64_t kMillion = 1'000'000;
constexpr std::size_t kFractionDigits = 6;

// Sign, 20 digits of a 64-bit number, point and fraction, with room to spare.
constexpr std::size_t kLongest = 32;

// "." and the digits of `millionths` without zeros at the end; returns the new end.
char* WriteFraction(std::uint64_t millionths, char* out) {
  std::size_t digits = kFractionDigits;
  for (; millionths % 10 == 0; millionths /= 10) {
    --digits;
  }
  *out = '.';
  for (std::size_t i = digits; i > 0; millionths /= 10, --i) {
    out[i] = static_cast<char>('0' + millionths % 10);
  }
  return out + digits + 1;
}

}  // namespace

void AppendInteger(std::int64_t value, std::string& text) {
  std::array<char, kLongest> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  text += std::string_view(digits.data(), end);
}

void AppendSeconds(Duration value, std::string& text) {
  const std::int64_t micros = value.count();
  // Unsigned, because the smallest number has no positive counterpart.
  const auto bits = static_cast<std::uint64_t>(micros);
  const std::uint64_t magnitude = micros < 0 ? ~bits + 1 : bits;
  std::array<char, kLongest> digits;
  char* out = digits.data();
  if (micros < 0) {
    *out++ = '-';
  }
  out = std::to_chars(out, digits.data() + digits.size(), magnitude / kMillion).ptr;
  if (const std::uint64_t rest = magnitude % kMillion; rest != 0) {
    out = WriteFraction(rest, out);
  }
  text += std::string_view(digits.data(), out);
}

void AppendMillionths(double value, std::string& text) {
  const double millionths = value * static_cast<double>(kMillion);
  if (std::abs(millionths) < 9e18) {
    AppendSeconds(Duration{std::llround(millionths)}, text);
    return;
  }
  // So large that a double has no millionths.
  std::array<char, std::numeric_limits<double>::max_exponent10 + 8> digits;
  const auto [end, error] =
      std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed);
  text += std::string_view(digits.data(), end);
}

}  // namespace trainyard::base
