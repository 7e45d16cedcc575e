// SPDX-License-Identifier: Apache-2.0
// The Gittins index of a job from a prior distribution of total service (Tiresias, NSDI'19, 4.2).
#pragma once

#include <cstddef>
#include <vector>

namespace trainyard::policies {

class GittinsIndex {
 public:
  // `samples`: total service of past jobs, GPU-seconds, any order, not empty. `horizon`: the
  // service that a decision looks ahead. O(n log n).
  GittinsIndex(std::vector<double> samples, double horizon);
  virtual ~GittinsIndex() = default;

  // The chance to end within the horizon, by the service expected until the end or the horizon,
  // for a job that has had `attained` GPU-seconds. Higher runs first; 0 where nothing ends within
  // the horizon and from the largest sample on. O(log n).
  [[nodiscard]] virtual double At(double attained) const;

 protected:
  GittinsIndex(const GittinsIndex&) = default;

  [[nodiscard]] const std::vector<double>& samples() const { return samples_; }
  [[nodiscard]] double horizon() const { return horizon_; }
  [[nodiscard]] std::size_t FirstAbove(double service) const;
  [[nodiscard]] double SumOf(std::size_t from, std::size_t to) const;
  // What the samples from `from` on take, which end behind the horizon.
  [[nodiscard]] double Beyond(std::size_t from) const;

 private:
  std::vector<double> samples_;  // ascending
  std::vector<double> sums_;     // of the first i samples
  double horizon_ = 0;
};

}  // namespace trainyard::policies
