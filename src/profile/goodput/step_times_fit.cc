// SPDX-License-Identifier: Apache-2.0
#include "profile/goodput/step_times_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "base/check.h"
#include "solver/minimise.h"

namespace trainyard::profile {
namespace {

constexpr double kFree = 1e-8;  // seconds of what costs nothing
constexpr double kGammaPrior = 1e-3;
constexpr double kGrowthPrior = 1e-2;
constexpr double kSlowerNetwork = 1.1;
// Added under the roots, which have no slope at 0.
constexpr double kSmooth = 1e-12;

// In the order of StepTimes.
enum Parameter : std::size_t {
  kAlphaCompute,
  kBetaCompute,
  kAlphaNetwork,
  kBetaNetwork,
  kAlphaNode,
  kBetaNode,
  kGamma,
  kParameters
};
using Parameters = std::array<double, kParameters>;

StepTimes TimesOf(std::span<const double> p) {
  return {.alpha_compute = p[kAlphaCompute],
          .beta_compute = p[kBetaCompute],
          .alpha_network = p[kAlphaNetwork],
          .beta_network = p[kBetaNetwork],
          .alpha_node = p[kAlphaNode],
          .beta_node = p[kBetaNode],
          .gamma = p[kGamma]};
}

Parameters ParametersOf(const StepTimes& t) {
  return {t.alpha_compute, t.beta_compute, t.alpha_network, t.beta_network,
          t.alpha_node,    t.beta_node,    t.gamma};
}

// A sum of squares of logarithms, and its slopes; its root mean square is part of the error.
struct LogSquares {
  double sum = 0;
  Parameters slopes{};

  void Add(double log_ratio, const Parameters& log_slopes) {
    sum += log_ratio * log_ratio;
    for (std::size_t i = 0; i < kParameters; ++i) {
      slopes.at(i) += 2 * log_ratio * log_slopes.at(i);
    }
  }
  // Adds the root of their mean over `count` to an error.
  [[nodiscard]] double AddRoot(double count, double smooth, std::span<double> to) const {
    const double root = std::sqrt(sum / count + smooth);
    for (std::size_t i = 0; i < kParameters && root > 0; ++i) {
      to[i] += slopes.at(i) / count / (2 * root);
    }
    return root;
  }
};

// The error and its slopes.
double ErrorAt(std::span<const double> p, std::span<const MeasuredStep> measured, double smooth,
               std::span<double> slopes) {
  const StepTimes times = TimesOf(p);
  const double gamma = times.gamma;
  LogSquares computes;
  LogSquares steps;
  for (const MeasuredStep& step : measured) {
    const auto part = static_cast<double>(step.part);
    const double compute = times.Compute(part);
    const double network = times.Network(step.nodes, step.gpus);
    const double beyond = std::max(static_cast<double>(step.gpus - 2), kFree);
    Parameters of_compute{};
    of_compute[kAlphaCompute] = 1 / compute;
    of_compute[kBetaCompute] = part / compute;
    computes.Add(std::log(compute) - std::log(step.compute), of_compute);
    // ln T = ln larger + ln(1 + q) / gamma, q = (smaller / larger)^gamma; each time has as large a
    // part in its slope as its power has in the sum.
    const double larger = std::max(compute, network);
    const double log_ratio = std::log(std::min(compute, network) / larger);
    const double q = std::exp(gamma * log_ratio);
    const double log_sum = std::log1p(q);
    const double share = compute >= network ? 1 / (1 + q) : q / (1 + q);  // of compute
    Parameters of_step{};
    of_step[kAlphaCompute] = share / compute;
    of_step[kBetaCompute] = share * part / compute;
    if (step.nodes > 1) {
      of_step[kAlphaNetwork] = (1 - share) / network;
      of_step[kBetaNetwork] = (1 - share) * beyond / network;
    } else if (step.gpus > 1) {
      of_step[kAlphaNode] = (1 - share) / network;
      of_step[kBetaNode] = (1 - share) * beyond / network;
    }
    of_step[kGamma] = -log_sum / (gamma * gamma) + q * log_ratio / (1 + q) / gamma;
    steps.Add(std::log(larger) + log_sum / gamma - std::log(step.seconds), of_step);
  }
  const auto count = static_cast<double>(measured.size());
  std::fill(slopes.begin(), slopes.end(), 0.0);
  double error = computes.AddRoot(count, smooth, slopes) + steps.AddRoot(count, smooth, slopes);
  error += kGammaPrior * (gamma - 1) * (gamma - 1);
  slopes[kGamma] += 2 * kGammaPrior * (gamma - 1);
  for (const auto& [alpha, beta] :
       {std::pair{kAlphaNetwork, kBetaNetwork}, std::pair{kAlphaNode, kBetaNode}}) {
    const double growth = p[beta] / p[alpha];
    error += kGrowthPrior * growth * growth;
    slopes[beta] += 2 * kGrowthPrior * growth / p[alpha];
    slopes[alpha] -= 2 * kGrowthPrior * growth * growth / p[alpha];
  }
  return error;
}

// Which of the parameters the measurements say something of, by their bounds: equal ones fix a
// parameter.
std::array<solver::Bounds, kParameters> BoundsFor(std::span<const MeasuredStep> measured) {
  std::array<solver::Bounds, kParameters> bounds;
  bounds.fill({.lower = kFree, .upper = std::numeric_limits<double>::infinity()});
  bounds[kGamma] = {.lower = 1, .upper = 10};
  const auto none = [&measured](auto is) {
    return std::none_of(measured.begin(), measured.end(), is);
  };
  const auto fix = [&bounds](std::initializer_list<Parameter> parameters, double value) {
    for (const Parameter parameter : parameters) {
      bounds.at(parameter) = {.lower = value, .upper = value};
    }
  };
  if (none([&](const MeasuredStep& step) { return step.part != measured.front().part; })) {
    const double sum =
        std::accumulate(measured.begin(), measured.end(), 0.0,
                        [](double all, const MeasuredStep& step) { return all + step.compute; });
    fix({kAlphaCompute}, sum / static_cast<double>(measured.size()) / 2);
  }
  if (none([](const MeasuredStep& step) { return step.nodes > 1; })) {
    fix({kAlphaNetwork, kBetaNetwork}, kFree);
  }
  if (none([](const MeasuredStep& step) { return step.nodes == 1 && step.gpus > 1; })) {
    fix({kAlphaNode, kBetaNode}, kFree);
  }
  if (none([](const MeasuredStep& step) { return step.gpus > 2; })) {
    fix({kBetaNetwork, kBetaNode}, kFree);
  }
  return bounds;
}

// The line through the fewest and the most samples of a part, and communication as the rest of a
// step, with a power between no overlap and much of it.
std::vector<Parameters> StartsFor(std::span<const MeasuredStep> measured) {
  const auto [least, most] =
      std::minmax_element(measured.begin(), measured.end(),
                          [](const auto& a, const auto& b) { return a.part < b.part; });
  const auto parts = static_cast<double>(most->part - least->part);
  const double slope = parts > 0 ? std::max((most->compute - least->compute) / parts, 1e-6)
                                 : least->compute / 2 / static_cast<double>(least->part);
  const double fixed =
      std::max(least->compute - slope * static_cast<double>(least->part), least->compute / 20);
  double network = 0;
  double node = 0;
  for (const MeasuredStep& step : measured) {
    double& rest = step.nodes > 1 ? network : node;
    rest = std::max(rest, step.seconds - step.compute);
  }
  network = std::max(network, 1e-4);
  node = std::max(node, 1e-4);
  std::vector<Parameters> starts{{.1, .01, .1, .01, .1, .01, 1.001}};  // the published one
  for (const double gamma : {1.05, 2.0, 5.0}) {
    starts.push_back({fixed, slope, network / 2, network / 20, node / 2, node / 20, gamma});
  }
  return starts;
}

}  // namespace

double StepTimesError(const StepTimes& times, std::span<const MeasuredStep> measured) {
  CHECK(!measured.empty());
  Parameters slopes{};
  return ErrorAt(ParametersOf(times), measured, 0, slopes);
}

StepTimesFit FitStepTimes(std::span<const MeasuredStep> measured) {
  CHECK(!measured.empty());
  const std::array<solver::Bounds, kParameters> bounds = BoundsFor(measured);
  StepTimesFit fit{.error = std::numeric_limits<double>::infinity()};
  std::array<solver::Bounds, kParameters> log_bounds;
  for (std::size_t i = 0; i < kParameters; ++i) {
    log_bounds.at(i) = {.lower = std::log(bounds.at(i).lower),
                        .upper = std::log(bounds.at(i).upper)};
  }
  for (const Parameters& start : StartsFor(measured)) {
    std::vector<double> log_start;
    for (std::size_t i = 0; i < kParameters; ++i) {
      log_start.push_back(
          std::log(std::clamp(start.at(i), bounds.at(i).lower, bounds.at(i).upper)));
    }
    const solver::Minimum found = solver::Minimise(
        [measured](std::span<const double> at, std::span<double> slopes) {
          Parameters p;
          std::transform(at.begin(), at.end(), p.begin(), [](double log) { return std::exp(log); });
          const double error = ErrorAt(p, measured, kSmooth, slopes);
          std::transform(p.begin(), p.end(), slopes.begin(), slopes.begin(), std::multiplies<>());
          return error;
        },
        log_bounds, std::move(log_start));
    Parameters p;
    std::transform(found.at.begin(), found.at.end(), bounds.begin(), p.begin(),
                   [](double log, const solver::Bounds& bound) {
                     return std::clamp(std::exp(log), bound.lower, bound.upper);
                   });
    const StepTimes times = TimesOf(p);
    if (const double error = StepTimesError(times, measured); error < fit.error) {
      fit = {.times = times, .error = error};
    }
  }
  if (std::none_of(measured.begin(), measured.end(),
                   [](const MeasuredStep& step) { return step.nodes > 1; })) {
    StepTimes& times = fit.times;
    times.alpha_network = std::max(times.alpha_network, kSlowerNetwork * times.alpha_node);
    times.beta_network = std::max(times.beta_network, kSlowerNetwork * times.beta_node);
  }
  return fit;
}

}  // namespace trainyard::profile
