// SPDX-License-Identifier: Apache-2.0
// For tests: allocation problems of Gavel (OSDI'20), drawn at random and wide in shape.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "policies/gavel/allocation_problem.h"

namespace trainyard {

struct GavelInstance {
  policies::AllocationProblem problem;  // with its pairs
  std::size_t fast_type = 0;            // whose rates policies without types count with
  // Those for which the problem has a meaning, by their published names.
  std::vector<std::string> policies;

  // The problem in which no two jobs share GPUs.
  [[nodiscard]] policies::AllocationProblem Unpacked() const;
};

// The same for the same seed.
[[nodiscard]] GavelInstance DrawGavelInstance(unsigned seed);

// What is special about the problem, in words, read off the problem itself.
[[nodiscard]] std::set<std::string> ShapesOf(const GavelInstance& instance);

}  // namespace trainyard
