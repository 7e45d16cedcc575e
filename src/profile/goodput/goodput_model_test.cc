// SPDX-License-Identifier: Apache-2.0
#include "profile/goodput/goodput_model.h"

#include <gtest/gtest.h>

#include <cmath>

namespace trainyard::profile {
namespace {

constexpr StepTimes kTimes{.alpha_compute = 0.1,
                           .beta_compute = 0.01,
                           .alpha_network = 0.4,
                           .beta_network = 0.05,
                           .alpha_node = 0.2,
                           .beta_node = 0.02,
                           .gamma = 2};
constexpr BatchLimits kLimits{.initial = 32, .most = 1024, .least_part = 8, .most_part = 64};

TEST(StepTimesTest, ASingleGpuAveragesNothing) {
  EXPECT_NEAR(kTimes.Network(1, 1), 1e-8, 1e-15);
  EXPECT_NEAR(kTimes.Iteration(1, 1, 10), kTimes.Compute(10), 1e-12);
}

TEST(StepTimesTest, TheNodeIsMeantWithinOneAndTheNetworkBeyond) {
  EXPECT_NEAR(kTimes.Network(1, 2), 0.2, 1e-9);
  EXPECT_NEAR(kTimes.Network(1, 4), 0.24, 1e-12);
  EXPECT_NEAR(kTimes.Network(2, 4), 0.5, 1e-12);
  // sqrt(0.2^2 + 0.5^2)
  EXPECT_NEAR(kTimes.Iteration(2, 4, 10), std::sqrt(0.29), 1e-12);
}

TEST(StepTimesTest, WithoutOverlapTimesAddUpAndWithMuchTheLongerOneCounts) {
  StepTimes times = kTimes;
  times.gamma = 1;
  EXPECT_NEAR(times.Iteration(2, 4, 10), 0.7, 1e-12);
  times.gamma = 10;
  EXPECT_NEAR(times.Iteration(2, 4, 10), 0.5, 1e-4);
}

TEST(GradientNoiseTest, ALargerBatchIsWorthItAsFarAsTheGradientIsNoisy) {
  const GradientNoise noise{.square = 1, .variance = 3};
  EXPECT_DOUBLE_EQ(noise.Gain(1), 1);
  EXPECT_DOUBLE_EQ(noise.Gain(3), 2);
  EXPECT_NEAR(noise.Gain(1e12), 4, 1e-9);  // no more than one plus the noise scale
  EXPECT_DOUBLE_EQ((GradientNoise{.square = 0, .variance = 1}).Gain(8), 8);
  EXPECT_DOUBLE_EQ((GradientNoise{}).Gain(8), 1);  // nothing is known
}

TEST(BatchForTest, TakesAsFewPassesAsTheLargestPartAllows) {
  EXPECT_EQ(BatchFor(256, 4, kLimits), (Batch{.part = 64, .accumulated = 0}));
  EXPECT_EQ(BatchFor(257, 4, kLimits), (Batch{.part = 33, .accumulated = 1}));
  EXPECT_EQ(BatchFor(32, 1, kLimits), (Batch{.part = 32, .accumulated = 0}));
}

TEST(BatchForTest, OneGpuAccumulatesAboveTheInitialBatch) {
  EXPECT_EQ(BatchFor(40, 1, kLimits), (Batch{.part = 20, .accumulated = 1}));
  EXPECT_EQ(BatchFor(40, 2, kLimits), (Batch{.part = 20, .accumulated = 0}));
}

TEST(GoodputModelTest, NoiseMakesLargeBatchesGood) {
  const GoodputModel still{.times = kTimes, .noise = {.square = 1}, .limits = kLimits};
  const GoodputModel noisy{
      .times = kTimes, .noise = {.square = 1, .variance = 1e6}, .limits = kLimits};
  EXPECT_EQ(still.Best(1, 4).batch.On(4), 32);
  EXPECT_GT(noisy.Best(1, 4).batch.On(4), 256);
  EXPECT_GT(noisy.Best(1, 4).value, noisy.Best(1, 1).value);
  EXPECT_GT(noisy.Best(1, 4).value, noisy.Best(2, 4).value);
}

TEST(GoodputModelTest, GoodputIsThroughputTimesEfficiency) {
  const GoodputModel model{
      .times = kTimes, .noise = {.square = 1, .variance = 8}, .limits = kLimits};
  const Goodput best = model.Best(2, 6);
  EXPECT_DOUBLE_EQ(best.value,
                   model.Throughput(2, 6, best.batch) * model.Efficiency(best.batch, 6));
  EXPECT_LE(model.Efficiency(best.batch, 6), 1);
}

TEST(GoodputModelTest, WhereTheLeastPartsAreTooManyNothingGoes) {
  const BatchLimits tight{.initial = 32, .most = 64, .least_part = 32, .most_part = 48};
  const GoodputModel model{.times = kTimes, .noise = {.square = 1}, .limits = tight};
  EXPECT_GT(model.Best(1, 2).value, 0);
  // 32 samples each are the least, however many GPUs there are.
  EXPECT_EQ(model.Best(1, 4).batch.On(4), 128);
}

}  // namespace
}  // namespace trainyard::profile
