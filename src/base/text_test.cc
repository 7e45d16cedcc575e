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

TEST(ReplaceAllTest, ReplacesWhatWasThere) {
  EXPECT_EQ(ReplaceAll("a$x b$x", "$x", "1"), "a1 b1");
  EXPECT_EQ(ReplaceAll("$x", "$x", "$x$x"), "$x$x");  // and does not go on with that
  EXPECT_EQ(ReplaceAll("none", "$x", "1"), "none");
}

TEST(FileNameTest, SignsThatAFileNameShouldNotHaveBecomeDashes) {
  EXPECT_EQ(FileNameOf("tiresias:quantum=3600;x=1/2"), "tiresias-quantum=3600-x=1-2");
  EXPECT_EQ(FileNameOf(".."), "-.");
}

}  // namespace
}  // namespace trainyard
