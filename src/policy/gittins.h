// SPDX-License-Identifier: Apache-2.0
// The Gittins index of a job from a prior distribution of total service (Tiresias, NSDI'19, 4.2).
#pragma once

#include <cstddef>
#include <vector>

namespace trainyard {

class GittinsIndex {
 public:
  // `samples`: total service of past jobs, GPU-seconds, any order, not empty. `horizon`: the
  // service that a decision looks ahead. `published`: the table of the Tiresias simulator with its
  // roundings. O(n log n).
  GittinsIndex(std::vector<double> samples, double horizon, bool published);

  // The chance to end within the horizon, by the service expected until the end or the horizon,
  // for a job that has had `attained` GPU-seconds. Higher runs first; 0 where nothing ends within
  // the horizon and from the largest sample on. (Published: scaled by 1e6.) O(log n).
  [[nodiscard]] double At(double attained) const;

 private:
  [[nodiscard]] std::size_t FirstAbove(double service) const;
  [[nodiscard]] double PublishedAt(double attained) const;

  std::vector<double> samples_;  // ascending
  std::vector<double> sums_;     // of the first i samples
  double horizon_ = 0;
  std::vector<double> published_;  // by sample: the index until it is attained
};

}  // namespace trainyard
