// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

#include <array>

namespace trainyard::base {
namespace {

constexpr std::array<std::string_view, 3> kNames{"fifo", "srtf", "tiresias"};

TEST(NearestNameTest, FindsASlip) { EXPECT_EQ(NearestName("tiresas", kNames), "tiresias"); }

TEST(NearestNameTest, TwoNeighboursSwappedAreOneSlip) {
  EXPECT_EQ(NearestName("strf", kNames), "srtf");
  EXPECT_EQ(NearestName("fiof", kNames), "fifo");
  EXPECT_EQ(NearestName("iffs", kNames), "");  // a swap and another letter
}

TEST(NearestNameTest, CapitalsAreNoSlip) { EXPECT_EQ(NearestName("FIFO", kNames), "fifo"); }

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

TEST(ToSpanTest, TakesUnitsOfTime) {
  EXPECT_EQ(ToSpan("90"), 90);
  EXPECT_EQ(ToSpan("1e6"), 1e6);
  EXPECT_EQ(ToSpan("90s"), 90);
  EXPECT_EQ(ToSpan("1.5h"), 5400);
  EXPECT_EQ(ToSpan("1d2h3m4s"), 86400 + 7200 + 180 + 4);
  EXPECT_EQ(ToSpan("90m", 3600), 1.5);
  EXPECT_EQ(ToSpan("2", 3600), 2);  // in units already
  for (const char* const none : {"", "h", "1x", "2w", "1m1h", "1h2", "-1h", "nan", "1ms"}) {
    EXPECT_FALSE(ToSpan(none).has_value()) << none;
  }
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

TEST(UtcTextTest, IsATimeOfTheWorldWithoutFractions) {
  EXPECT_EQ(UtcText(1'790'000'000.9), "2026-09-21T14:13:20Z");
  EXPECT_EQ(UtcText(-0.5), "1969-12-31T23:59:59Z");
  EXPECT_EQ(UtcNow().size(), UtcText(0).size());
}

TEST(ShortDurationTest, HasTheUnitsThatFit) {
  EXPECT_EQ(ShortDuration(0), "0s");
  EXPECT_EQ(ShortDuration(0.0001), "<1ms");
  EXPECT_EQ(ShortDuration(0.35), "350ms");
  EXPECT_EQ(ShortDuration(12.44), "12.4s");
  EXPECT_EQ(ShortDuration(43 * 60 + 10), "43m10s");
  EXPECT_EQ(ShortDuration(2 * 3600 + 5 * 60), "2h05m");
  EXPECT_EQ(ShortDuration(100 * 3600), "4d04h");
  EXPECT_EQ(ShortDuration(-90), "-1m30s");
}

TEST(ShortDurationTest, RoundingCarriesIntoTheNextUnit) {
  EXPECT_EQ(ShortDuration(0.9996), "1.0s");
  EXPECT_EQ(ShortDuration(59.97), "1m00s");
  EXPECT_EQ(ShortDuration(3599.6), "1h00m");
  EXPECT_EQ(ShortDuration(100 * 3600 - 20), "4d04h");
}

}  // namespace
}  // namespace trainyard::base
