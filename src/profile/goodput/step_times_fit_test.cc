// SPDX-License-Identifier: Apache-2.0
#include "profile/goodput/step_times_fit.h"

#include <gtest/gtest.h>

#include <vector>

namespace trainyard::profile {
namespace {

constexpr StepTimes kTrue{.alpha_compute = 0.02,
                          .beta_compute = 0.0005,
                          .alpha_network = 0.05,
                          .beta_network = 0.001,
                          .alpha_node = 0.01,
                          .beta_node = 0.0002,
                          .gamma = 1.5};

MeasuredStep At(int nodes, int gpus, std::int64_t part) {
  const auto samples = static_cast<double>(part);
  return {.nodes = nodes,
          .gpus = gpus,
          .part = part,
          .seconds = kTrue.Iteration(nodes, gpus, samples),
          .compute = kTrue.Compute(samples)};
}

TEST(StepTimesFitTest, FindsTheTimesThatWereMeasuredAndOthers) {
  const std::vector<MeasuredStep> measured{At(1, 1, 32), At(1, 2, 64),  At(1, 4, 48),
                                           At(2, 8, 64), At(4, 16, 32), At(2, 4, 128)};
  const StepTimesFit fit = FitStepTimes(measured);
  EXPECT_LT(fit.error, 0.02);
  for (const MeasuredStep& step : {At(1, 3, 80), At(3, 12, 100), At(1, 1, 128)}) {
    const auto part = static_cast<double>(step.part);
    EXPECT_NEAR(fit.times.Iteration(step.nodes, step.gpus, part), step.seconds,
                0.03 * step.seconds);
    EXPECT_NEAR(fit.times.Compute(part), step.compute, 0.03 * step.compute);
  }
}

TEST(StepTimesFitTest, WhatWasNeverTriedCostsNothing) {
  const StepTimesFit fit = FitStepTimes(std::vector<MeasuredStep>{At(1, 1, 32)});
  EXPECT_NEAR(fit.times.alpha_compute, kTrue.Compute(32) / 2, 1e-9);
  EXPECT_NEAR(fit.times.Compute(32), kTrue.Compute(32), 1e-6);
  EXPECT_LT(fit.times.Network(1, 4), 1e-6);
  EXPECT_LT(fit.times.Network(4, 16), 1e-6);
}

TEST(StepTimesFitTest, AnUntriedNetworkIsSlowerThanTheNode) {
  const StepTimesFit fit =
      FitStepTimes(std::vector<MeasuredStep>{At(1, 1, 32), At(1, 2, 32), At(1, 4, 64)});
  EXPECT_GT(fit.times.alpha_node, 1e-4);
  EXPECT_NEAR(fit.times.alpha_network, 1.1 * fit.times.alpha_node, 1e-9);
}

TEST(StepTimesFitTest, IsTheSameEachTime) {
  const std::vector<MeasuredStep> measured{At(1, 1, 32), At(1, 2, 64), At(2, 4, 48)};
  EXPECT_EQ(FitStepTimes(measured).times.gamma, FitStepTimes(measured).times.gamma);
  EXPECT_EQ(FitStepTimes(measured).error, FitStepTimes(measured).error);
}

}  // namespace
}  // namespace trainyard::profile
