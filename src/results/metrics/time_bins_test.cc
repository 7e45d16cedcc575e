// SPDX-License-Identifier: Apache-2.0
#include "results/trace_stats/trace_statistics.h"

#include <gtest/gtest.h>

namespace trainyard::results {
namespace {

using Amounts = std::vector<double>;

TEST(TimeBinsTest, CountsWhereThingsHappen) {
  TimeBins bins(10, 8);
  bins.Add(25, 1);
  bins.Add(29.9, 2);
  bins.Add(40, 4);
  EXPECT_EQ(bins.start(), 20);
  EXPECT_EQ(bins.Amounts(), (Amounts{3, 0, 4}));
}

TEST(TimeBinsTest, EarlierTimesMayComeLater) {
  TimeBins bins(10, 8);
  bins.Add(45, 1);
  bins.Add(15, 2);
  EXPECT_EQ(bins.start(), 10);
  EXPECT_EQ(bins.Amounts(), (Amounts{2, 0, 0, 1}));
}

TEST(TimeBinsTest, RatesFillThePartsOfBins) {
  TimeBins bins(10, 8);
  bins.AddRate(5, 32, 2);
  bins.AddRate(12, 13, 1);
  EXPECT_EQ(bins.Amounts(), (Amounts{10, 21, 20, 4}));
}

TEST(TimeBinsTest, TooManyBinsBecomeHalfAsMany) {
  TimeBins bins(10, 4);
  bins.Add(15, 1);
  bins.AddRate(15, 45, 1);
  bins.Add(75, 3);  // eight bins from here
  EXPECT_EQ(bins.width(), 20);
  EXPECT_EQ(bins.start(), 0);
  EXPECT_EQ(bins.Amounts(), (Amounts{6, 20, 5, 3}));
  bins.AddRate(0, 79, 1);
  EXPECT_EQ(bins.Amounts(), (Amounts{26, 40, 25, 22}));
}

}  // namespace
}  // namespace trainyard::results
