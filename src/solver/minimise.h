// SPDX-License-Identifier: Apache-2.0
// The least value of a smooth function of a few numbers between bounds, for fits of models. NLopt
// searches it; only minimise.cc knows it. No scheduling vocabulary here.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace trainyard::solver {

// Between which a number may lie, both included. They may be equal, or infinite.
struct Bounds {
  double lower = 0;
  double upper = 0;
};

// The function at `at`, and its partial derivatives there, which it writes to `slopes` (as many as
// numbers). REQUIRES of it: finite within the bounds, and no exception.
using SmoothFunction = std::function<double(std::span<const double> at, std::span<double> slopes)>;

struct MinimiseOptions {
  double relative = 1e-10;  // the search ends where a step gains less than this share
  int evaluations = 2000;   // or after so many; never after seconds
};

struct Minimum {
  std::vector<double> at;
  double value = 0;
};

// The best point that a search by gradients (sequential quadratic programming with bounds, Kraft,
// 1988) finds from `start`: a local minimum where the function is smooth. Never worse than `start`;
// the same for the same arguments. REQUIRES: as many bounds as numbers in `start`, which lies
// within them.
[[nodiscard]] Minimum Minimise(const SmoothFunction& function, std::span<const Bounds> bounds,
                               std::vector<double> start, const MinimiseOptions& options = {});

}  // namespace trainyard::solver
