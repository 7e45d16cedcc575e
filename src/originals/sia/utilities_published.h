// SPDX-License-Identifier: Apache-2.0
// What configurations are worth to a job in the published Sia (SOSP'23), in its single precision
// (docs/originals.md).
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "policies/sia/assignment.h"
#include "policies/sia/configurations.h"
#include "profile/goodput/goodput_model.h"

namespace trainyard::originals {

// What a job may not or cannot use; the program has no other sign for it.
inline constexpr float kUnusable = 1e-4F;

// One type of GPU as the job sees it; types are numbered as in policies::NodeKind.
struct PublishedType {
  int node_gpus = 0;
  // Of one GPU, samples a second: only quotients count. 0: the job does not run there.
  double one_gpu = 0;
  profile::BatchLimits limits{};              // `most`: what the job asks for
  std::int64_t most_batch = 0;                // of the application
  std::optional<profile::StepTimes> times{};  // none: the job has not run on it
  int tried_gpus = 0;
};

// Goodput::value of the best batch as the program finds it: nodes and GPUs are numbers of single
// precision, and so are the batches that are tried.
[[nodiscard]] float PublishedGoodput(const profile::GoodputModel& model, int nodes, int gpus);

// The most GPUs that are offered to the job.
[[nodiscard]] int PublishedMostGpus(std::span<const PublishedType> types);

// The worth of each configuration, of which the worst usable one has 1. `kinds`: by their number,
// the type.
[[nodiscard]] std::vector<float> PublishedUtilities(
    std::span<const policies::Configuration> configurations, std::span<const PublishedType> types,
    const profile::GradientNoise& noise);

// Seconds that the program takes a restart of the application for, which are not always those that
// its simulator charges.
[[nodiscard]] double PublishedPenalty(std::string_view application);

// By what the worth of all configurations is multiplied but for the one that the job has.
[[nodiscard]] double PublishedRestartFactor(double age, int restarts, double penalty);

struct PublishedProgram {
  double power = -0.5;
  double unserved = 1.1;
  bool round = true;  // to two decimals, in single precision
};

// What a configuration costs by its worth after the restart factor.
[[nodiscard]] double PublishedCost(const PublishedProgram& program, double utility);

}  // namespace trainyard::originals
