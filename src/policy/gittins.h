// SPDX-License-Identifier: Apache-2.0
// The Gittins index of a job from a prior distribution of total service (Tiresias, NSDI'19, 4.2).
#pragma once

#include <vector>

namespace trainyard {

class GittinsIndex {
 public:
  // `samples`: total service of past jobs, GPU-seconds, any order, not empty. `horizon`: the
  // service that a decision looks ahead. `published`: with the roundings of the Tiresias simulator
  // (reference 2.3). O(n log n).
  GittinsIndex(std::vector<double> samples, double horizon, bool published);

  // Chance to finish within the horizon per service spent, for a job that has had `attained`
  // GPU-seconds; higher runs first; 0 beyond the largest sample. O(log n).
  [[nodiscard]] double At(double attained) const;

 private:
  std::vector<double> samples_;  // ascending
  std::vector<double> values_;   // the index until samples_[i] is attained
};

}  // namespace trainyard
