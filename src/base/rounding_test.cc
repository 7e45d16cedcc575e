// SPDX-License-Identifier: Apache-2.0
#include "base/rounding.h"

#include <gtest/gtest.h>

namespace trainyard::base {
namespace {

TEST(NextMultipleTest, IsTheFirstMultipleNotBefore) {
  const TimePoint anchor = AtSeconds(100);
  EXPECT_EQ(NextMultiple(anchor, FromSeconds(60), AtSeconds(161)), AtSeconds(220));
  EXPECT_EQ(NextMultiple(anchor, FromSeconds(60), AtSeconds(160)), AtSeconds(160));
  EXPECT_EQ(NextMultiple(anchor, FromSeconds(60), AtSeconds(160) + Duration{1}), AtSeconds(220));
}

TEST(NextMultipleTest, IsTheAnchorForWhatComesBefore) {
  EXPECT_EQ(NextMultiple(AtSeconds(100), FromSeconds(60), AtSeconds(100)), AtSeconds(100));
  EXPECT_EQ(NextMultiple(AtSeconds(100), FromSeconds(60), AtSeconds(-500)), AtSeconds(100));
}

TEST(NextMultipleDeathTest, ALengthOfNothingIsAnError) {
  EXPECT_DEATH((void)NextMultiple(AtSeconds(0), Duration{0}, AtSeconds(1)), "CHECK");
}

TEST(CeilToSecondTest, IsTheFirstWholeSecondNotBefore) {
  EXPECT_EQ(CeilToSecond(41.0), FromSeconds(41));
  EXPECT_EQ(CeilToSecond(41.0000001), FromSeconds(42));
  EXPECT_EQ(CeilToSecond(-0.5), Duration{0});
}

}  // namespace
}  // namespace trainyard::base
