// SPDX-License-Identifier: Apache-2.0
#include "service/rate_limit.h"

#include <gtest/gtest.h>

#include <random>

namespace trainyard::service {
namespace {

TEST(RateLimit, TakesABurstAndThenWhatTheRateGives) {
  RateLimit limit({.per_s = 2, .burst = 3});
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(limit.Take("ann", 10).has_value());
  }
  const auto refusal = limit.Take("ann", 10);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_DOUBLE_EQ(refusal->wait_s, 0.5);
  EXPECT_TRUE(refusal->first);
  EXPECT_FALSE(limit.Take("ann", 10)->first);
  EXPECT_FALSE(limit.Take("ann", 10.5).has_value());
  EXPECT_TRUE(limit.Take("ann", 10.5).has_value());
}

TEST(RateLimit, OneDoesNotPayForAnother) {
  RateLimit limit({.per_s = 1, .burst = 1});
  EXPECT_FALSE(limit.Take("ann", 0).has_value());
  EXPECT_TRUE(limit.Take("ann", 0).has_value());
  EXPECT_FALSE(limit.Take("ben", 0).has_value());
}

TEST(RateLimit, ZeroIsNoLimit) {
  RateLimit limit({});
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(limit.Take("ann", 0).has_value());
  }
  EXPECT_EQ(limit.size(), 0U);
}

TEST(RateLimit, WhoHasWaitedLongIsForgotten) {
  RateLimit limit({.per_s = 1, .burst = 1});
  for (int i = 0; i < 100'000; ++i) {
    EXPECT_FALSE(limit.Take(std::to_string(i), i).has_value());
  }
  EXPECT_LE(limit.size(), 1024U);
}

// However calls come, no more get through in any time than burst and rate allow, and who waits as
// long as it is told gets through.
TEST(RateLimit, NeverLetsMoreThroughThanItSays) {
  std::minstd_rand random(1);
  std::uniform_real_distribution<double> pause(0, 0.3);
  RateLimit limit({.per_s = 5, .burst = 7});
  int through = 0;
  double now = 0;
  for (int i = 0; i < 10'000; ++i) {
    now += pause(random);
    const auto refusal = limit.Take("ann", now);
    through += refusal ? 0 : 1;
    ASSERT_LE(through, 7 + 5 * now + 1e-6);
    if (refusal && i % 7 == 0) {
      now += refusal->wait_s + 1e-9;
      ASSERT_FALSE(limit.Take("ann", now).has_value());
      ++through;
    }
  }
  EXPECT_GT(through, 4 * now);
}

TEST(RateLimitTest, TheRateMayChange) {
  RateLimit limit({.per_s = 1, .burst = 1});
  EXPECT_FALSE(limit.Take("ann", 0));
  EXPECT_TRUE(limit.Take("ann", 0));
  limit.SetRate({.per_s = 10, .burst = 100});
  EXPECT_EQ(limit.rate().burst, 100);
  EXPECT_FALSE(limit.Take("ann", 0.1));
  EXPECT_TRUE(limit.Take("ann", 0.1));
  limit.SetRate({});
  EXPECT_FALSE(limit.Take("ann", 0.1)) << "no limit any more";
}

}  // namespace
}  // namespace trainyard::service
