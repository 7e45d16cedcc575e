// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

#include <array>

namespace trainyard {
namespace {

constexpr std::array<std::string_view, 3> kNames{"fifo", "srtf", "tiresias"};

TEST(NearestNameTest, FindsASlip) { EXPECT_EQ(NearestName("tiresas", kNames), "tiresias"); }

TEST(NearestNameTest, DoesNotGuessWildly) { EXPECT_EQ(NearestName("gandiva", kNames), ""); }

TEST(UnknownNameTest, ListsWhatIsKnown) {
  EXPECT_EQ(UnknownName("policy", "fifi", kNames),
            "unknown policy 'fifi'; did you mean 'fifo'?; known: fifo, srtf, tiresias");
}

TEST(SplitTest, KeepsEmptyParts) {
  const std::vector<std::string_view> parts = Split("a,;b", ",;");
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[1], "");
}

TEST(ToNumberTest, TakesTheWholeTextOrNothing) {
  EXPECT_EQ(ToNumber("2.5"), 2.5);
  EXPECT_FALSE(ToNumber("2.5x").has_value());
  EXPECT_FALSE(ToNumber("inf").has_value());
  EXPECT_FALSE(ToNumber("").has_value());
}

}  // namespace
}  // namespace trainyard
