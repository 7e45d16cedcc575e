// SPDX-License-Identifier: Apache-2.0
// Lengths of time as people write them, and the times of a job.
#pragma once

#include <optional>
#include <string_view>

#include "trainyard/job.h"
#include "trainyard/time.h"

namespace trainyard::trace {

// Seconds of "02:00:00", "1-02:00:00", "1-02:00" (a day and two hours) or "1 days 02:00:00",
// with decimals or without; of "30:00" (minutes and seconds) where `two_parts`. Nothing: it is
// none.
[[nodiscard]] std::optional<double> ParseClock(std::string_view text, bool two_parts = false);

// Seconds of what ParseClock takes, or of "10m", "1h30m", "90s", "2d". Nothing: it is none of them,
// or a number without a unit.
[[nodiscard]] std::optional<double> ParseSpan(std::string_view text);

// All times of the job that are on a clock count from `zero` on.
void CountFrom(TimePoint zero, JobSpec& job);

}  // namespace trainyard::trace
