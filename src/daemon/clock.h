// SPDX-License-Identifier: Apache-2.0
// The engine's time in a live cluster: real time since a zero, stretched if a trace is played.
#pragma once

#include <chrono>

#include "trainyard/time.h"

namespace trainyard::daemon {

// Monotonic: setting the machine's clock does not move it back.
class LiveClock {
 public:
  // `unix_zero`: seconds since 1970 at the engine's zero; `scale`: engine seconds per real second.
  explicit LiveClock(double unix_zero = 0, double scale = 1)
      : scale_(scale),
        started_(std::chrono::steady_clock::now()),
        at_start_(UnixNow() - unix_zero) {}

  [[nodiscard]] static double UnixNow() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
  [[nodiscard]] TimePoint Now() const {
    const std::chrono::duration<double> since = std::chrono::steady_clock::now() - started_;
    return AtSeconds((at_start_ + since.count()) * scale_);
  }
  // When the real clock shows what the engine calls `time`.
  [[nodiscard]] std::chrono::steady_clock::time_point RealTime(TimePoint time) const {
    const std::chrono::duration<double> real{Seconds(time) / scale_ - at_start_};
    return started_ + std::chrono::duration_cast<std::chrono::steady_clock::duration>(real);
  }

 private:
  double scale_;
  std::chrono::steady_clock::time_point started_;
  double at_start_;
};

}  // namespace trainyard::daemon
