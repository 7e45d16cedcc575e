// SPDX-License-Identifier: Apache-2.0
#include "trace/generators/week_shape.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace trainyard::trace {
namespace {

constexpr double kHour = 3600;
constexpr double kWeek = 168 * kHour;

double Weight(std::size_t hour, const WeekOptions& options) {
  constexpr double kTwoPi = 6.283185307179586;
  constexpr std::size_t kHoursOfDay = 24;
  constexpr std::size_t kFirstOfWeekend = 5 * kHoursOfDay;
  const double middle = static_cast<double>(hour % kHoursOfDay) + 0.5;
  const double day =
      1 + options.day_swing * std::cos(kTwoPi * (middle - options.peak_hour) / kHoursOfDay);
  return day * (hour >= kFirstOfWeekend ? options.weekend_factor : 1);
}

}  // namespace

WeekShape::WeekShape(const WeekOptions& options) {
  CHECK(options.day_swing >= 0 && options.day_swing <= 1 && options.weekend_factor >= 0);
  double sum = 0;
  for (std::size_t hour = 0; hour < kHours; ++hour) {
    rate_.at(hour) = std::max(Weight(hour, options), 0.0);
    sum += rate_.at(hour);
  }
  for (std::size_t hour = 0; hour < kHours; ++hour) {
    rate_.at(hour) *= static_cast<double>(kHours) / sum;
    evened_.at(hour + 1) = evened_.at(hour) + rate_.at(hour);
  }
}

double WeekShape::RateAt(double seconds) const {
  const double in_week = seconds - std::floor(seconds / kWeek) * kWeek;
  return rate_.at(std::min(static_cast<std::size_t>(in_week / kHour), kHours - 1));
}

double WeekShape::Evened(double seconds) const {
  const double weeks = std::floor(seconds / kWeek);
  const double hours = (seconds - weeks * kWeek) / kHour;
  const std::size_t hour = std::min(static_cast<std::size_t>(hours), kHours - 1);
  return weeks * kWeek +
         kHour * (evened_.at(hour) + (hours - static_cast<double>(hour)) * rate_.at(hour));
}

double WeekShape::Clock(double evened) const {
  const double weeks = std::floor(evened / kWeek);
  const double hours = (evened - weeks * kWeek) / kHour;
  const auto next = std::upper_bound(evened_.begin() + 1, evened_.end() - 1, hours);
  const auto hour = static_cast<std::size_t>(next - evened_.begin()) - 1;
  const double rest = rate_.at(hour) > 0 ? (hours - evened_.at(hour)) / rate_.at(hour) : 0;
  return weeks * kWeek + kHour * (static_cast<double>(hour) + std::min(rest, 1.0));
}

}  // namespace trainyard::trace
