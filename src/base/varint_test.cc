// SPDX-License-Identifier: Apache-2.0
#include "base/varint.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace trainyard::base {
namespace {

std::string Written(std::uint64_t value) {
  std::string bytes;
  PutVarint(bytes, value);
  return bytes;
}

TEST(VarintTest, SevenBitsAByteTheLowestFirst) {
  EXPECT_EQ(Written(0), std::string(1, '\0'));
  EXPECT_EQ(Written(127), "\x7f");
  EXPECT_EQ(Written(128), std::string("\x80\x01"));
  EXPECT_EQ(Written(300), std::string("\xac\x02"));
  EXPECT_EQ(Written(std::numeric_limits<std::uint64_t>::max()).size(), kLongestVarint);
}

TEST(VarintTest, WhatIsWrittenIsReadAndTheRestIsLeft) {
  for (unsigned bit = 0; bit < 64; ++bit) {
    for (const std::uint64_t off : {~std::uint64_t{0}, std::uint64_t{0}, std::uint64_t{1}}) {
      const std::uint64_t value = (std::uint64_t{1} << bit) + off;
      const std::string bytes = Written(value) + "rest";
      std::string_view left = bytes;
      EXPECT_EQ(TakeVarint(left), value);
      EXPECT_EQ(left, "rest");
    }
  }
}

TEST(VarintTest, ANumberThatIsCutOffOrTooLongIsNone) {
  const std::string long_number = Written(std::uint64_t{1} << 40);
  for (std::size_t size = 0; size < long_number.size(); ++size) {
    std::string_view cut = std::string_view(long_number).substr(0, size);
    EXPECT_EQ(TakeVarint(cut), std::nullopt) << size;
  }
  const std::string endless(20, '\xff');
  std::string_view bytes = endless;
  EXPECT_EQ(TakeVarint(bytes), std::nullopt);
}

TEST(VarintTest, SmallNumbersOfBothSignsAreShort) {
  EXPECT_EQ(ZigZag(0), 0U);
  EXPECT_EQ(ZigZag(-1), 1U);
  EXPECT_EQ(ZigZag(1), 2U);
  EXPECT_EQ(ZigZag(-64), 127U);
  for (const std::int64_t value : {std::numeric_limits<std::int64_t>::min(), std::int64_t{-7},
                                   std::int64_t{0}, std::numeric_limits<std::int64_t>::max()}) {
    EXPECT_EQ(UnZigZag(ZigZag(value)), value);
  }
}

}  // namespace
}  // namespace trainyard::base
