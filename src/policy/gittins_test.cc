// SPDX-License-Identifier: Apache-2.0
#include "policy/gittins.h"
#include "support/reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>

namespace trainyard {
namespace {

// Published: reference 2.3, word for word. Otherwise the definition: the chance to end within the
// horizon by the service that is spent until then. O(n).
double RankByDefinition(const std::vector<double>& sorted, double horizon, bool published,
                        double attained) {
  const std::size_t n = sorted.size();
  const auto first_above = [&](double value) {
    std::size_t i = 0;
    while (i < n && sorted[i] <= value) {
      ++i;
    }
    return i;
  };
  if (!published) {
    double ending = 0;
    double service = 0;
    for (const double sample : sorted) {
      if (sample > attained) {
        ending += sample <= attained + horizon ? 1 : 0;
        service += std::min(sample - attained, horizon);
      }
    }
    return ending > 0 ? ending / service : 0;
  }
  const std::size_t place = first_above(attained);
  if (place == n) {
    return 0;
  }
  const double a = sorted[place] - 1;
  const std::size_t from = first_above(a);
  const bool beyond = a + horizon > sorted[n - 1] - 1;
  const std::size_t to = beyond ? n - 1 : first_above(a + horizon);
  double service = horizon * static_cast<double>(n - to);
  for (std::size_t i = from; i < to; ++i) {
    service += sorted[i];
  }
  service /= static_cast<double>(n - from);
  double chance = static_cast<double>(to - from) / static_cast<double>(n - from);
  chance = std::round(chance * 1e5) / 1e5;
  return std::round(chance * 1e6 / std::floor(service) * 1e4) / 1e4;
}

TEST(GittinsIndexTest, IsTheChanceToEndPerServiceSpent) {
  const GittinsIndex index({10, 20, 400}, 100, false);
  // Two of three end within 100; that takes (10 + 20 + 100) / 3.
  EXPECT_DOUBLE_EQ(index.At(0), 2.0 / 130);
  // Past 10 one of two does, in (10 + 100) / 2.
  EXPECT_DOUBLE_EQ(index.At(10), 1.0 / 110);
  // The largest sample lies beyond the horizon of all others.
  EXPECT_EQ(index.At(20), 0);
}

TEST(GittinsIndexTest, RisesAsTheEndComesNear) {
  const GittinsIndex index({10, 20, 400}, 100, false);
  EXPECT_GT(index.At(9.5), index.At(0));
  EXPECT_GT(index.At(350), index.At(301));
}

TEST(GittinsIndexTest, ThePublishedOneStaysUntilTheNextSampleIsAttained) {
  const GittinsIndex index({10, 20, 400}, 100, true);
  EXPECT_EQ(index.At(9.5), index.At(0));
  EXPECT_NE(index.At(10), index.At(9.5));
}

TEST(GittinsIndexTest, IsZeroBeyondTheLastSample) {
  const GittinsIndex index({10, 20, 400}, 100, false);
  EXPECT_EQ(index.At(400), 0);
  EXPECT_EQ(index.At(1e12), 0);
}

TEST(GittinsIndexTest, DoesNotDependOnTheOrderOfTheSamples) {
  const GittinsIndex sorted({10, 20, 400}, 100, false);
  const GittinsIndex mixed({400, 10, 20}, 100, false);
  for (const double attained : {0, 10, 20, 400}) {
    EXPECT_EQ(mixed.At(attained), sorted.At(attained));
  }
}

TEST(GittinsIndexTest, ALongerHorizonTakesInMoreEnds) {
  const std::vector<double> samples{10, 20, 300, 400};
  EXPECT_DOUBLE_EQ(GittinsIndex(samples, 12, false).At(0), 1.0 / (10 + 12 * 3));
  EXPECT_DOUBLE_EQ(GittinsIndex(samples, 1000, false).At(0), 4.0 / (10 + 20 + 300 + 400));
}

TEST(GittinsIndexTest, EqualSamplesEndTogether) {
  const GittinsIndex index({10, 10, 10, 1000}, 100, false);
  EXPECT_DOUBLE_EQ(index.At(0), 3.0 / (30 + 100));
}

TEST(GittinsIndexTest, WithoutAHorizonNobodyEnds) {
  EXPECT_EQ(GittinsIndex({10, 20}, 0, false).At(0), 0);
  EXPECT_EQ(GittinsIndex({10, 20}, 0, true).At(0), 0);
}

TEST(GittinsIndexTest, RoundsAsPublished) {
  const GittinsIndex index({10, 20, 400}, 100, true);
  // The chance to 5 decimals, the service to whole units, the index to 4 decimals.
  EXPECT_DOUBLE_EQ(index.At(0), 15503.9535);  // 666,670 / 43
  EXPECT_DOUBLE_EQ(index.At(10), 8333.3333);  // 500,000 / 60
  EXPECT_EQ(index.At(20), 0);
}

TEST(GittinsIndexTest, PublishedHalvesAreRoundedUp) {
  // The chance is 8/9, rounded to 0.88889, the service (8 x 10 + 2800) / 9 = 320: 2777.78125.
  const GittinsIndex index({10, 10, 10, 10, 10, 10, 10, 10, 5000}, 2800, true);
  EXPECT_DOUBLE_EQ(index.At(0), 2777.7813);  // as Python 2 rounds
}

TEST(GittinsIndexTest, IsTheDefinitionOnRandomSamples) {
  std::mt19937 random(1);
  for (int round = 0; round < 60; ++round) {
    std::vector<double> samples(1 + random() % 40);
    for (double& sample : samples) {
      sample = 1 + static_cast<double>(random() % 500);
    }
    const double horizon = 1 + static_cast<double>(random() % 300);
    const bool published = round % 2 == 0;
    const GittinsIndex index(samples, horizon, published);
    std::sort(samples.begin(), samples.end());
    for (int attained = 0; attained < 520; attained += 3) {
      ASSERT_NEAR(index.At(attained), RankByDefinition(samples, horizon, published, attained), 1e-9)
          << "round " << round << ", attained " << attained;
    }
  }
}

TEST(GittinsIndexTest, ThePublishedPriorGivesAFiniteTable) {
  const std::string path = Reference() + "/data/tiresias/yarn-gput1000.csv";
  std::ifstream file(path);
  TRAINYARD_NEEDS_REFERENCE();
  std::vector<double> samples;
  std::string line;
  std::getline(file, line);  // the header
  while (std::getline(file, line)) {
    samples.push_back(std::stod(line));
  }
  ASSERT_GT(samples.size(), 900U);
  const GittinsIndex index(samples, 3250, true);
  double highest = 0;
  for (const double sample : samples) {
    const double value = index.At(sample - 1);
    ASSERT_TRUE(std::isfinite(value)) << sample;
    ASSERT_GE(value, 0) << sample;
    highest = std::max(highest, value);
  }
  EXPECT_GT(highest, 0);
}

}  // namespace
}  // namespace trainyard
