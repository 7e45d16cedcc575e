// SPDX-License-Identifier: Apache-2.0
// Times as users of Slurm write them.
#pragma once

#include <optional>
#include <string_view>

namespace trainyard::cli {

// Seconds of "1-12", "1-12:30", "1-12:30:15", "12:30:15" and "30:15" (minutes and seconds).
[[nodiscard]] std::optional<double> SlurmSpan(std::string_view text);

// Seconds since 1970 of "now", "now+1hour", "now+90" (seconds), "18:00", "18:00:30" (the next),
// "today", "midnight", "noon", "teatime" (16:00) and "tomorrow"; local time. `now`: since 1970.
[[nodiscard]] std::optional<double> SlurmTime(std::string_view text, double now);

}  // namespace trainyard::cli
