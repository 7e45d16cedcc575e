// SPDX-License-Identifier: Apache-2.0
// Times of simulated and live clusters: whole microseconds (int64) since the zero of the trace or
// of the controller. Sums and differences are exact, so that a run gives the same result on every
// machine. Seconds, as doubles, appear only where a value is parsed, printed or put into a formula.
// The range is 292,000 years; nothing here checks for overflow.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>

namespace trainyard {

// A length of time in microseconds; may be negative.
using Duration = std::chrono::duration<std::int64_t, std::micro>;

// The clock type of TimePoint. EngineTime has no now(): nothing above the worlds reads a clock, and
// the present is always an argument (Snapshot::now).
struct EngineTime {
  using duration = Duration;
};
// An instant. Zero is the zero of the trace, or of the controller on a live cluster.
using TimePoint = std::chrono::time_point<EngineTime, Duration>;

// "Never": later than every other time. REQUIRES: nothing is added to kEndOfTime.
inline constexpr TimePoint kEndOfTime = TimePoint::max();

// The same value in seconds; exact to about 15 digits.
[[nodiscard]] constexpr double Seconds(Duration d) { return static_cast<double>(d.count()) / 1e6; }
[[nodiscard]] constexpr double Seconds(TimePoint t) { return Seconds(t.time_since_epoch()); }
// The same value in microseconds, exact below 2^53 (285 years). The right unit for keys of an
// Ordering: a division could make two different times equal, or two equal sums different.
[[nodiscard]] constexpr double Micros(Duration d) { return static_cast<double>(d.count()); }
[[nodiscard]] constexpr double Micros(TimePoint t) { return Micros(t.time_since_epoch()); }

// The nearest microsecond, half-way cases away from zero; for parsed input. REQUIRES, of the three
// functions below: `seconds` is finite and less than 9.2e12 in size.
[[nodiscard]] inline Duration FromSeconds(double seconds) {
  return Duration{std::llround(seconds * 1e6)};
}
// The first whole microsecond not before `seconds`; for predicted ends and checks, so that the work
// is done, or the limit reached, when the time has come.
[[nodiscard]] inline Duration CeilFromSeconds(double seconds) {
  return Duration{static_cast<std::int64_t>(std::ceil(seconds * 1e6))};
}
// The instant so many seconds after zero, to the nearest microsecond.
[[nodiscard]] inline TimePoint AtSeconds(double seconds) { return TimePoint{FromSeconds(seconds)}; }

}  // namespace trainyard
