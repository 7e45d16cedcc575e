// SPDX-License-Identifier: Apache-2.0
#include "policies/orderings/gittins.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace trainyard::policies {
namespace {

// The chance to end within the horizon by the service that is spent until then. O(n).
double RankByDefinition(const std::vector<double>& samples, double horizon, double attained) {
  double ending = 0;
  double service = 0;
  for (const double sample : samples) {
    if (sample > attained) {
      ending += sample <= attained + horizon ? 1 : 0;
      service += std::min(sample - attained, horizon);
    }
  }
  return ending > 0 ? ending / service : 0;
}

TEST(GittinsIndexTest, IsTheChanceToEndPerServiceSpent) {
  const GittinsIndex index({10, 20, 400}, 100);
  // Two of three end within 100; that takes (10 + 20 + 100) / 3.
  EXPECT_DOUBLE_EQ(index.At(0), 2.0 / 130);
  // Past 10 one of two does, in (10 + 100) / 2.
  EXPECT_DOUBLE_EQ(index.At(10), 1.0 / 110);
  // The largest sample lies beyond the horizon of all others.
  EXPECT_EQ(index.At(20), 0);
}

TEST(GittinsIndexTest, RisesAsTheEndComesNear) {
  const GittinsIndex index({10, 20, 400}, 100);
  EXPECT_GT(index.At(9.5), index.At(0));
  EXPECT_GT(index.At(350), index.At(301));
}

TEST(GittinsIndexTest, IsZeroBeyondTheLastSample) {
  const GittinsIndex index({10, 20, 400}, 100);
  EXPECT_EQ(index.At(400), 0);
  EXPECT_EQ(index.At(1e12), 0);
}

TEST(GittinsIndexTest, DoesNotDependOnTheOrderOfTheSamples) {
  const GittinsIndex sorted({10, 20, 400}, 100);
  const GittinsIndex mixed({400, 10, 20}, 100);
  for (const double attained : {0, 10, 20, 400}) {
    EXPECT_EQ(mixed.At(attained), sorted.At(attained));
  }
}

TEST(GittinsIndexTest, ALongerHorizonTakesInMoreEnds) {
  const std::vector<double> samples{10, 20, 300, 400};
  EXPECT_DOUBLE_EQ(GittinsIndex(samples, 12).At(0), 1.0 / (10 + 12 * 3));
  EXPECT_DOUBLE_EQ(GittinsIndex(samples, 1000).At(0), 4.0 / (10 + 20 + 300 + 400));
}

TEST(GittinsIndexTest, EqualSamplesEndTogether) {
  const GittinsIndex index({10, 10, 10, 1000}, 100);
  EXPECT_DOUBLE_EQ(index.At(0), 3.0 / (30 + 100));
}

TEST(GittinsIndexTest, WithoutAHorizonNobodyEnds) { EXPECT_EQ(GittinsIndex({10, 20}, 0).At(0), 0); }

TEST(GittinsIndexTest, IsTheDefinitionOnRandomSamples) {
  std::mt19937 random(1);
  for (int round = 0; round < 60; ++round) {
    std::vector<double> samples(1 + random() % 40);
    for (double& sample : samples) {
      sample = 1 + static_cast<double>(random() % 500);
    }
    const double horizon = 1 + static_cast<double>(random() % 300);
    const GittinsIndex index(samples, horizon);
    for (int attained = 0; attained < 520; attained += 3) {
      ASSERT_NEAR(index.At(attained), RankByDefinition(samples, horizon, attained), 1e-9)
          << "round " << round << ", attained " << attained;
    }
  }
}

}  // namespace
}  // namespace trainyard::policies
