// SPDX-License-Identifier: Apache-2.0
// The step times of a training from what it has measured of itself (Pollux, OSDI'21, section 4.1).
#pragma once

#include <cstdint>
#include <span>

#include "profile/goodput/goodput_model.h"

namespace trainyard::profile {

// One allocation and batch at which the training has run.
struct MeasuredStep {
  int nodes = 0;
  int gpus = 0;
  std::int64_t part = 0;  // samples of a GPU in a pass
  double seconds = 0;     // of a pass that averages gradients, > 0
  double compute = 0;     // of a pass that does not, > 0
};

struct StepTimesFit {
  StepTimes times;
  double error = 0;  // StepTimesError of `times`
};

// How far the model is from the measurements: the root mean square of the logarithm of predicted
// over measured times, of passes with and without averaging, plus the published priors: gamma near
// 1, and communication that grows slowly with the GPUs. REQUIRES: `measured` is not empty.
[[nodiscard]] double StepTimesError(const StepTimes& times, std::span<const MeasuredStep> measured);

// The best fit that a search from a few fixed points finds. What nothing is known of costs nothing,
// so that a training is tried on more GPUs: the network as long as it has run on one node only (at
// least a tenth more than within a node, once that is known), both for one GPU, and the growth with
// the number of GPUs up to two. Of one size of a GPU's part, half of the compute time counts as
// fixed. `fit.error` is that before the network is taken to be slower than the node.
// REQUIRES: `measured` is not empty. Deterministic; a few ms.
[[nodiscard]] StepTimesFit FitStepTimes(std::span<const MeasuredStep> measured);

}  // namespace trainyard::profile
