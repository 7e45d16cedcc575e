// SPDX-License-Identifier: Apache-2.0
#include "policies/optimus/loss_curve.h"

#include <gtest/gtest.h>

#include <random>

namespace trainyard::policies {
namespace {

double Loss(double work, double a, double b, double c) { return 1 / (a * work + b) + c; }

TEST(LossCurveTest, ExactLossesGiveTheirOwnCurve) {
  for (const double c : {0.0, 0.3, 1.7}) {
    LossCurve curve;
    for (int i = 0; i < 12; ++i) {
      curve.Add(500 * i, Loss(500 * i, 0.002, 0.5, c));
    }
    ASSERT_TRUE(curve.ConvergesAt(0.1).has_value()) << c;
    EXPECT_NEAR(*curve.ConvergesAt(0.1), 9 * 250, 5) << c;
    EXPECT_NEAR(*curve.ConvergesAt(0.01), 99 * 250, 50) << c;
  }
}

TEST(LossCurveTest, NoiseMovesItALittle) {
  std::mt19937 random(4);
  LossCurve curve;
  for (int i = 0; i < 200; ++i) {
    const double noise = 1 + (static_cast<double>(random() % 200) - 100) / 10'000;
    curve.Add(50 * i, Loss(50 * i, 0.002, 0.5, 0.4) * noise);
  }
  ASSERT_TRUE(curve.ConvergesAt(0.1).has_value());
  EXPECT_NEAR(*curve.ConvergesAt(0.1), 9 * 250, 9 * 50);
}

TEST(LossCurveTest, FewPointsSayNothing) {
  LossCurve curve;
  for (std::size_t i = 0; i + 1 < LossCurve::kLeastPoints; ++i) {
    const auto work = static_cast<double>(100 * i);
    curve.Add(work, Loss(work, 0.01, 1, 0));
    curve.Add(work + 50, Loss(work, 0.01, 1, 0));  // seen again
    EXPECT_FALSE(curve.ConvergesAt(0.1).has_value());
  }
  curve.Add(1000, Loss(1000, 0.01, 1, 0));
  EXPECT_TRUE(curve.ConvergesAt(0.1).has_value());
}

TEST(LossCurveTest, LossesThatDoNotFallOrCannotBeLossesSayNothing) {
  LossCurve rising;
  LossCurve negative;
  LossCurve standing;
  for (int i = 0; i < 20; ++i) {
    rising.Add(100 * i, 1 + 0.1 * i);
    negative.Add(100 * i, -1 - 0.1 * i);
    standing.Add(100, 5 - 0.1 * i);  // all after the same work
  }
  EXPECT_FALSE(rising.ConvergesAt(0.1).has_value());
  EXPECT_FALSE(negative.ConvergesAt(0.1).has_value());
  EXPECT_FALSE(standing.ConvergesAt(0.1).has_value());
}

}  // namespace
}  // namespace trainyard::policies
