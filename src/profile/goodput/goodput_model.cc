// SPDX-License-Identifier: Apache-2.0
#include "profile/goodput/goodput_model.h"

#include <algorithm>
#include <cmath>

namespace trainyard::profile {
namespace {

constexpr int kCandidates = 50;
constexpr double kNothing = 1e-8;  // what takes no time, or is rounded away

// (a^p + b^p)^(1/p) for a, b > 0, without leaving the range of numbers.
double PowerSum(double a, double b, double power) {
  const double larger = std::max(a, b);
  const double smaller = std::min(a, b);
  return larger * std::pow(1 + std::pow(smaller / larger, power), 1 / power);
}

}  // namespace

double StepTimes::Network(int nodes, int gpus) const {
  const double beyond = std::max(static_cast<double>(gpus - 2), kNothing);
  if (nodes > 1) {
    return alpha_network + beta_network * beyond;
  }
  return gpus > 1 ? alpha_node + beta_node * beyond : kNothing + kNothing * beyond;
}

double StepTimes::Iteration(int nodes, int gpus, double part) const {
  return PowerSum(Compute(part), Network(nodes, gpus), gamma);
}

double GradientNoise::Gain(double scale) const {
  const double below = variance / scale + square;
  return below > 0 ? (variance + square) / below : 1;
}

Batch BatchFor(double target, int gpus, const BatchLimits& limits) {
  const double part = target / gpus;
  auto accumulated = static_cast<std::int64_t>(
      std::ceil(part / static_cast<double>(limits.most_part) - kNothing) - 1);
  if (gpus == 1 && part > static_cast<double>(limits.initial) + kNothing) {
    accumulated = std::max<std::int64_t>(accumulated, 1);
  }
  accumulated = std::max<std::int64_t>(accumulated, 0);
  return {.part = static_cast<std::int64_t>(
              std::ceil(part / static_cast<double>(accumulated + 1) - kNothing)),
          .accumulated = accumulated};
}

double GoodputModel::Throughput(int nodes, int gpus, const Batch& batch) const {
  const auto part = static_cast<double>(batch.part);
  const double seconds = static_cast<double>(batch.accumulated) * times.Compute(part) +
                         times.Iteration(nodes, gpus, part);
  return static_cast<double>(batch.On(gpus)) / seconds;
}

double GoodputModel::Efficiency(const Batch& batch, int gpus) const {
  const double scale = static_cast<double>(batch.On(gpus)) / static_cast<double>(limits.initial);
  return noise.Gain(scale) / scale;
}

Goodput GoodputModel::Best(int nodes, int gpus) const {
  const auto least = static_cast<double>(std::max(limits.initial, limits.least_part * gpus));
  const auto most = static_cast<double>(limits.most);
  const double first = std::log10(least);
  const double step = (std::log10(most) - first) / (kCandidates - 1);
  Goodput best;
  Batch last{.part = -1};
  for (int i = 0; i < kCandidates; ++i) {
    const double target = i == 0                 ? least
                          : i == kCandidates - 1 ? most
                                                 : std::pow(10.0, i * step + first);
    const Batch batch = BatchFor(target, gpus, limits);
    if (batch == last || batch.part < limits.least_part || batch.part > limits.most_part) {
      continue;
    }
    last = batch;
    const double value = Throughput(nodes, gpus, batch) * Efficiency(batch, gpus);
    if (value > best.value) {
      best = {.value = value, .batch = batch};
    }
  }
  return best;
}

}  // namespace trainyard::profile
