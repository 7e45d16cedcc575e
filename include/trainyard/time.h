// SPDX-License-Identifier: Apache-2.0
// Simulated and live time: whole microseconds since the trace's (or controller's) zero.
// Seconds appear only where something is parsed, printed or handed to a formula.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>

namespace trainyard {

using Duration = std::chrono::duration<std::int64_t, std::micro>;

// The engine's clock; it has no now(): time is always an argument.
struct EngineTime {
  using duration = Duration;
};
using TimePoint = std::chrono::time_point<EngineTime, Duration>;

inline constexpr TimePoint kEndOfTime = TimePoint::max();

[[nodiscard]] constexpr double Seconds(Duration d) { return static_cast<double>(d.count()) / 1e6; }
[[nodiscard]] constexpr double Seconds(TimePoint t) { return Seconds(t.time_since_epoch()); }
[[nodiscard]] constexpr double Micros(Duration d) { return static_cast<double>(d.count()); }
[[nodiscard]] constexpr double Micros(TimePoint t) { return Micros(t.time_since_epoch()); }

// The nearest microsecond; for parsed input.
[[nodiscard]] inline Duration FromSeconds(double seconds) {
  return Duration{std::llround(seconds * 1e6)};
}
// The first whole microsecond not before `seconds`; for predicted ends, so that the work is done.
[[nodiscard]] inline Duration CeilFromSeconds(double seconds) {
  return Duration{static_cast<std::int64_t>(std::ceil(seconds * 1e6))};
}
[[nodiscard]] inline TimePoint AtSeconds(double seconds) { return TimePoint{FromSeconds(seconds)}; }

}  // namespace trainyard
