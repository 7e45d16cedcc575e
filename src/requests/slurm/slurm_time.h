// SPDX-License-Identifier: Apache-2.0
// Times as users write them, those of Slurm among them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace trainyard::requests {

// Seconds, or why the text is no time although it has the form of one ("99 minutes; expected 0 to
// 59"). Neither: it does not have the form of one.
struct TimeReading {
  std::optional<double> seconds{};
  std::string why{};

  [[nodiscard]] bool has_form() const { return seconds.has_value() || !why.empty(); }
};

// A span: "90" (seconds), "1h30m" (base::ToSpan), and as in Slurm "1-12", "1-12:30", "1-12:30:15",
// "12:30:15" and "30:15" (minutes and seconds).
[[nodiscard]] TimeReading ReadSpan(std::string_view text);

// Whether the text means no time limit: "UNLIMITED" or "INFINITE", in any case, or a span of 0.
[[nodiscard]] bool IsUnlimited(std::string_view text);

// Seconds since 1970 of "2026-11-21T18:00" (local time unless it ends with Z; seconds and a blank
// in place of T are allowed), "2026-11-21", "now", "now+1hour", "now+90" (seconds), and the next
// "18:00", "18:00:30", "6:00pm", "midnight", "noon", "elevenses" (11:00), "fika" (15:00), "teatime"
// (16:00); "today" is now, "tomorrow" the next midnight. `now`: since 1970. Not a time: a day or an
// hour that does not exist, such as 30 February or the hour that daylight saving time skips.
[[nodiscard]] TimeReading ReadTime(std::string_view text, double now);

}  // namespace trainyard::requests
