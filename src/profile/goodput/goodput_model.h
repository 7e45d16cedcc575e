// SPDX-License-Identifier: Apache-2.0
// How much a training gains by GPUs and by the size of its batch: goodput, the throughput times the
// statistical efficiency (Pollux, OSDI'21, section 3). Pure functions of a few numbers; policies
// compare allocations by them, and trainings choose their batches.
#pragma once

#include <cstdint>

namespace trainyard::profile {

// How long an iteration takes on n nodes and k GPUs (section 3.2): the forward and backward pass of
// a GPU's part of the batch, and averaging the gradients of all GPUs:
//   Compute = alpha_compute + beta_compute x part
//   Network = alpha + beta x (k - 2), of the network for n > 1 and of the node for n = 1; 0 for
//             k = 1
//   Iteration = (Compute^gamma + Network^gamma)^(1/gamma): gamma = 1 if neither overlaps the other,
//               large if the shorter one is hidden
struct StepTimes {
  double alpha_compute = 0;  // seconds, > 0
  double beta_compute = 0;   // seconds for each sample of a GPU's part, > 0
  double alpha_network = 0;  // seconds, > 0
  double beta_network = 0;   // seconds for each GPU beyond two, > 0
  double alpha_node = 0;     // the same between GPUs of one node
  double beta_node = 0;
  double gamma = 1;  // 1 to 10

  friend bool operator==(const StepTimes&, const StepTimes&) = default;
  // Seconds of a pass over `part` samples on one GPU, without averaging gradients.
  [[nodiscard]] double Compute(double part) const { return alpha_compute + beta_compute * part; }
  // Seconds of averaging gradients. REQUIRES: 1 <= nodes <= gpus.
  [[nodiscard]] double Network(int nodes, int gpus) const;
  // Seconds of a pass that ends with averaging.
  [[nodiscard]] double Iteration(int nodes, int gpus, double part) const;
};

// Of the gradient's estimate in one iteration, both for the initial batch size: what tells how much
// a larger batch is worth (the gradient noise scale is initial batch x variance / square).
struct GradientNoise {
  double square = 0;    // of the length of the true gradient, >= 0
  double variance = 0;  // of the estimate, >= 0

  // Progress of an iteration with a batch `scale` times the initial one, in iterations with the
  // initial one; from 1 to `scale`. REQUIRES: scale > 0.
  [[nodiscard]] double Gain(double scale) const;
  friend bool operator==(const GradientNoise&, const GradientNoise&) = default;
};

// What batches a training may use, in samples.
struct BatchLimits {
  std::int64_t initial = 0;     // the one that the user would use; the least, > 0
  std::int64_t most = 0;        // of all GPUs together, >= initial
  std::int64_t least_part = 1;  // of one GPU in one pass
  std::int64_t most_part = 0;

  friend bool operator==(const BatchLimits&, const BatchLimits&) = default;
};

// How a batch is done: `part` samples on each GPU in each of `accumulated + 1` passes, of which the
// last one averages the gradients.
struct Batch {
  std::int64_t part = 0;
  std::int64_t accumulated = 0;

  // Samples in all.
  [[nodiscard]] std::int64_t On(int gpus) const { return gpus * part * (accumulated + 1); }
  friend bool operator==(const Batch&, const Batch&) = default;
};

// The batch of about `target` samples in all on so many GPUs, rounded up to whole parts, with as
// few passes as the largest part allows. One GPU takes two passes at least for more than the
// initial batch: it could not tell the noise of its gradient otherwise. May be above the limits.
// REQUIRES: gpus >= 1.
[[nodiscard]] Batch BatchFor(double target, int gpus, const BatchLimits& limits);

struct Goodput {
  double value = 0;  // samples of the initial batch's worth a second; 0: it cannot run so
  Batch batch{};
};

struct GoodputModel {
  StepTimes times;
  GradientNoise noise;
  BatchLimits limits;

  // Samples a second.
  [[nodiscard]] double Throughput(int nodes, int gpus, const Batch& batch) const;
  // Of a sample in such a batch, measured by one in the initial batch; 0 to 1.
  [[nodiscard]] double Efficiency(const Batch& batch, int gpus) const;
  // The best of 50 batches in geometric progression over the limits; the first of equal ones.
  // REQUIRES: 1 <= nodes <= gpus. O(50 powers).
  [[nodiscard]] Goodput Best(int nodes, int gpus) const;
  friend bool operator==(const GoodputModel&, const GoodputModel&) = default;
};

}  // namespace trainyard::profile
