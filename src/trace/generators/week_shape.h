// SPDX-License-Identifier: Apache-2.0
// How the rate of submissions goes up and down through a week.
#pragma once

#include <array>
#include <cstddef>

namespace trainyard::trace {

inline constexpr double kDaySeconds = 86'400;

// The rate of an hour is proportional to 1 + day_swing * cos(2 pi (hour - peak_hour) / 24), on days
// 6 and 7 times the weekend factor. Time 0 is a Monday at midnight.
struct WeekOptions {
  double day_swing = 0;       // 0 to 1; 0: all hours alike
  double peak_hour = 15;      // the middle of the busiest time, 0 to 24
  double weekend_factor = 1;  // >= 0; 1: all days alike
};

class WeekShape {
 public:
  explicit WeekShape(const WeekOptions& options);

  // The rate at a time as a multiple of the mean over a week.
  [[nodiscard]] double RateAt(double seconds) const;
  // How many seconds at the mean rate bring as many submissions as those up to `seconds`; and back.
  [[nodiscard]] double Evened(double seconds) const;
  [[nodiscard]] double Clock(double evened) const;

 private:
  static constexpr std::size_t kHours = 168;
  std::array<double, kHours> rate_{};        // with mean 1
  std::array<double, kHours + 1> evened_{};  // hours at the mean rate before each
};

}  // namespace trainyard::trace
