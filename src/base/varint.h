// SPDX-License-Identifier: Apache-2.0
// Integers of variable length, as journals and snapshots have them: seven bits a byte, the lowest
// first; the eighth bit says that more follow. Small numbers are short, those of both signs by
// ZigZag.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace trainyard::base {

inline constexpr std::size_t kLongestVarint = 10;  // bytes

// `out` takes bytes by +=.
template <typename Out>
void PutVarint(Out& out, std::uint64_t value) {
  for (; value >= 128; value >>= 7) {
    out += static_cast<char>((value & 127) | 128);
  }
  out += static_cast<char>(value);
}

// Takes the number off the front of `bytes`. None: they end before the number does, or it is longer
// than any; some bytes may have been taken.
[[nodiscard]] inline std::optional<std::uint64_t> TakeVarint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 7 * kLongestVarint && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 127U) << shift;
    if (byte < 128) {
      return value;
    }
  }
  return std::nullopt;
}

// 0, -1, 1, -2, ... as 0, 1, 2, 3, ...
[[nodiscard]] constexpr std::uint64_t ZigZag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ (value < 0 ? ~std::uint64_t{0} : 0);
}
[[nodiscard]] constexpr std::int64_t UnZigZag(std::uint64_t bits) {
  return static_cast<std::int64_t>((bits >> 1) ^ ((bits & 1) != 0 ? ~std::uint64_t{0} : 0));
}

}  // namespace trainyard::base
