// SPDX-License-Identifier: Apache-2.0
// Seconds of an iteration from what a running script tells. Where several loader workers begin
// together, they deliver together, so that iterations come in bursts: a time from the middle of one
// burst to the middle of another counts a pause too many or too few.
#pragma once

#include <cmath>
#include <map>
#include <optional>

namespace trainyard::profiler {

class Pace {
 public:
  // `burst`: iterations that come at once, 1 or more.
  explicit Pace(int burst) : burst_(burst) {}

  // So many iterations were done after so many seconds; neither falls.
  void Note(double iterations, double seconds) {
    const Point now{iterations, seconds};
    if (!first_) {
      first_ = now;
    }
    const Point& same_place =
        in_burst_.try_emplace(std::fmod(iterations, burst_), now).first->second;
    if (iterations - same_place.iterations > whole_.iterations) {
      whole_ = {iterations - same_place.iterations, seconds - same_place.seconds};
    }
    all_ = {iterations - first_->iterations, seconds - first_->seconds};
  }
  // Over as many whole bursts as there were; over all where there was none. 0: one iteration or
  // fewer were told of.
  [[nodiscard]] double seconds() const {
    const Point& counted = whole_.iterations > 0 ? whole_ : all_;
    return counted.iterations > 0 ? counted.seconds / counted.iterations : 0;
  }

 private:
  struct Point {
    double iterations = 0;
    double seconds = 0;
  };

  const int burst_;
  std::optional<Point> first_;
  std::map<double, Point> in_burst_;  // the first one at each place of a burst
  Point whole_;                       // the longest time from a place to the same place
  Point all_;
};

}  // namespace trainyard::profiler
