// SPDX-License-Identifier: Apache-2.0
#include "originals/sia/utilities_published.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace trainyard::originals {
namespace {

constexpr int kCandidates = 50;
constexpr double kNothing = 1e-8;
constexpr float kTen = 10;

// A progression of single precision whose ends are exact.
std::array<float, kCandidates> BatchesFrom(float least, float most) {
  const float first = std::log10(least);
  const float last = std::log10(most);
  const float step = (last - first) / (kCandidates - 1);
  std::array<float, kCandidates> batches{};
  for (int i = 0; i < kCandidates; ++i) {
    const float exponent = i == kCandidates - 1 ? last : static_cast<float>(i) * step + first;
    batches.at(static_cast<std::size_t>(i)) = std::pow(kTen, exponent);
  }
  batches.front() = least;
  batches.back() = most;
  return batches;
}

// profile::BatchFor, whose guards against rounding are lost in single precision.
profile::Batch BatchInSingle(float target, int gpus, const profile::BatchLimits& limits) {
  const float part = target / static_cast<float>(gpus);
  const float passes = part / static_cast<float>(limits.most_part) - static_cast<float>(kNothing);
  auto accumulated = static_cast<std::int64_t>(std::ceil(passes)) - 1;
  if (gpus == 1 && part > static_cast<float>(limits.initial)) {
    accumulated = std::max<std::int64_t>(accumulated, 1);
  }
  accumulated = std::max<std::int64_t>(accumulated, 0);
  return {.part = static_cast<std::int64_t>(std::ceil(
              static_cast<double>(part) / static_cast<double>(accumulated + 1) - kNothing)),
          .accumulated = accumulated};
}

}  // namespace

float PublishedGoodput(const profile::GoodputModel& model, int nodes, int gpus) {
  const profile::BatchLimits& limits = model.limits;
  const float least = std::max(static_cast<float>(limits.initial),
                               static_cast<float>(limits.least_part) * static_cast<float>(gpus));
  double best = 0;
  for (const float target : BatchesFrom(least, static_cast<float>(limits.most))) {
    const profile::Batch batch = BatchInSingle(target, gpus, limits);
    if (batch.part < limits.least_part || batch.part > limits.most_part) {
      continue;
    }
    best = std::max(best, model.Throughput(nodes, gpus, batch) * model.Efficiency(batch, gpus));
  }
  return static_cast<float>(best);
}

int PublishedMostGpus(std::span<const PublishedType> types) {
  std::int64_t most = 1;
  for (const PublishedType& type : types) {
    most = std::max(most, std::min({std::max<std::int64_t>(std::int64_t{2} * type.tried_gpus, 1),
                                    std::int64_t{policies::kMostConfiguredGpus},
                                    type.most_batch / type.limits.least_part}));
  }
  return static_cast<int>(most);
}

namespace {

// Of a type that the job has not run on: as the first one that it has, by their one-GPU
// throughputs.
float EstimateOn(const policies::Configuration& configuration, std::span<const PublishedType> types,
                 const profile::GradientNoise& noise) {
  const PublishedType& here = types[configuration.kind];
  if (here.times) {
    return PublishedGoodput({.times = *here.times, .noise = noise, .limits = here.limits},
                            configuration.nodes, configuration.gpus);
  }
  const auto source = std::find_if(
      types.begin(), types.end(), [](const PublishedType& type) { return type.times.has_value(); });
  if (source == types.end()) {
    return kUnusable;
  }
  const int nodes = (configuration.gpus + source->node_gpus - 1) / source->node_gpus;
  const float there =
      PublishedGoodput({.times = *source->times, .noise = noise, .limits = source->limits}, nodes,
                       configuration.gpus);
  return static_cast<float>(static_cast<double>(there) * (here.one_gpu / source->one_gpu));
}

}  // namespace

std::vector<float> PublishedUtilities(std::span<const policies::Configuration> configurations,
                                      std::span<const PublishedType> types,
                                      const profile::GradientNoise& noise) {
  std::vector<float> row(configurations.size(), kUnusable);
  const bool known = std::any_of(types.begin(), types.end(),
                                 [](const PublishedType& type) { return type.times.has_value(); });
  const int most = PublishedMostGpus(types);
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (configurations[i].gpus <= most && known) {
      row[i] = EstimateOn(configurations[i], types, noise);
    }
  }
  float least = 0;
  for (const float worth : row) {
    least = worth > kUnusable && (least == 0 || worth < least) ? worth : least;
  }
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (least > 0) {  // what cannot be used is multiplied as well
      row[i] *= 1 / least;
    }
    if (!known && configurations[i].gpus == 1 && types[configurations[i].kind].one_gpu > 0) {
      row[i] = 1;
    }
    row[i] = std::max(row[i], kUnusable);
  }
  return row;
}

double PublishedPenalty(std::string_view application) {
  constexpr std::array<std::pair<std::string_view, double>, 4> kPenalties{
      {{"bert", 120}, {"deepspeech2", 25}, {"imagenet", 250}, {"yolov3", 45}}};
  constexpr double kOfOthers = 30;
  const auto* const found =
      std::find_if(kPenalties.begin(), kPenalties.end(),
                   [application](const auto& one) { return one.first == application; });
  return found == kPenalties.end() ? kOfOthers : found->second;
}

double PublishedRestartFactor(double age, int restarts, double penalty) {
  return age < penalty ? 1 : std::max(age - restarts * penalty, 0.0) / (age + penalty);
}

double PublishedCost(const PublishedProgram& program, double utility) {
  constexpr double kMost = 3000;
  if (!program.round) {
    return std::min(std::pow(utility, program.power), kMost);
  }
  constexpr float kHundred = 100;
  const float cost = std::pow(static_cast<float>(utility), static_cast<float>(program.power));
  return std::min(static_cast<double>(std::nearbyint(cost * kHundred) / kHundred), kMost);
}

}  // namespace trainyard::originals
