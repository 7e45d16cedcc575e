// SPDX-License-Identifier: Apache-2.0
// When a training will have converged, from the losses that it reports (Optimus, EuroSys'18,
// section 3.1): loss after k units of work = 1 / (a k + b) + c.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "trainyard/state.h"

namespace trainyard::policies {

class LossCurve {
 public:
  // The loss after `work` units. Counts only if it is another one than the last: a value that is
  // merely seen again belongs to an earlier moment. Old points are thinned out. O(kMostPoints) if
  // it counts.
  void Add(double work, double loss);

  // The work after which all but the share `rest` of what the training can gain is gained:
  // (1 / rest - 1) b / a. None: fewer than kLeastPoints, or no falling curve fits them.
  // REQUIRES: 0 < rest < 1.
  [[nodiscard]] std::optional<double> ConvergesAt(double rest) const;

  void Serialize(StateStream& state) { state(points_, halfway_); }

  static constexpr std::size_t kLeastPoints = 5;
  static constexpr std::size_t kMostPoints = 64;

 private:
  struct Point {
    double work = 0;
    double loss = 0;
    void Serialize(StateStream& state) { state(work, loss); }
  };
  struct Fit {
    double a = 0;  // > 0; work in units of the largest seen
    double b = 0;  // > 0
    double error = 0;
  };
  [[nodiscard]] std::optional<Fit> FitAbove(double c, double scale) const;
  void FitAgain();

  std::vector<Point> points_;      // in the order in which they were seen
  std::optional<double> halfway_;  // b / a, in units of work
};

}  // namespace trainyard::policies
