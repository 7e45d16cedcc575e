// SPDX-License-Identifier: Apache-2.0
#include "trace/timestamp.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <ctime>

namespace trainyard::trace {
namespace {

using std::chrono::sys_days;

// Takes a text apart from the front.
class TimeCursor {
 public:
  explicit TimeCursor(std::string_view text) : rest_(text) {}

  [[nodiscard]] bool AtEnd() const { return rest_.empty(); }
  [[nodiscard]] char Next() const { return rest_.empty() ? '\0' : rest_.front(); }

  bool Take(char wanted) {
    if (Next() != wanted) {
      return false;
    }
    rest_.remove_prefix(1);
    return true;
  }

  // Exactly so many digits.
  std::optional<int> TakeDigits(std::size_t count) {
    int number = 0;
    const std::string_view digits = rest_.substr(0, count);
    const auto [stop, code] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (digits.size() != count || code != std::errc{} || stop != digits.data() + count ||
        digits.front() == '-') {
      return std::nullopt;
    }
    rest_.remove_prefix(count);
    return number;
  }

  // All digits that follow, as decimals of a second.
  std::optional<Duration> TakeDecimals() {
    constexpr int kPlaces = 6;
    std::int64_t micros = 0;
    int places = 0;
    for (; Next() >= '0' && Next() <= '9'; rest_.remove_prefix(1)) {
      if (places < kPlaces) {
        micros = micros * 10 + (Next() - '0');
      }
      ++places;
    }
    for (int missing = places; missing < kPlaces; ++missing) {
      micros *= 10;
    }
    return places > 0 ? std::optional(Duration{micros}) : std::nullopt;
  }

 private:
  std::string_view rest_;
};

std::optional<sys_days> TakeDay(TimeCursor& cursor) {
  const auto year = cursor.TakeDigits(4);
  const bool dashed = year && cursor.Take('-');
  const auto month = dashed ? cursor.TakeDigits(2) : std::nullopt;
  const auto day = month && cursor.Take('-') ? cursor.TakeDigits(2) : std::nullopt;
  if (!day) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date{std::chrono::year{*year},
                                         std::chrono::month{static_cast<unsigned>(*month)},
                                         std::chrono::day{static_cast<unsigned>(*day)}};
  return date.ok() ? std::optional(sys_days{date}) : std::nullopt;
}

// Two digits below `end`.
std::optional<int> TakeBelow(TimeCursor& cursor, int end) {
  const auto number = cursor.TakeDigits(2);
  return number && *number < end ? number : std::nullopt;
}

constexpr int kHours = 24;
constexpr int kSixty = 60;  // minutes and seconds

std::optional<Duration> TakeTimeOfDay(TimeCursor& cursor) {
  const auto hours = TakeBelow(cursor, kHours);
  const auto minutes = hours && cursor.Take(':') ? TakeBelow(cursor, kSixty) : std::nullopt;
  const auto seconds = minutes && cursor.Take(':') ? TakeBelow(cursor, kSixty) : std::nullopt;
  const auto decimals =
      seconds && cursor.Take('.') ? cursor.TakeDecimals() : std::optional(Duration{0});
  if (!seconds || !decimals) {
    return std::nullopt;
  }
  return std::chrono::hours{*hours} + std::chrono::minutes{*minutes} +
         std::chrono::seconds{*seconds} + *decimals;
}

// What is to be taken off the time for UTC.
std::optional<Duration> TakeZone(TimeCursor& cursor) {
  if (cursor.Take('Z')) {
    return Duration{0};
  }
  const bool east = cursor.Take('+');
  if (!east && !cursor.Take('-')) {
    return std::nullopt;
  }
  const auto hours = TakeBelow(cursor, kHours);
  if (!hours) {
    return std::nullopt;
  }
  std::optional<int> minutes = 0;
  if (cursor.Take(':') || !cursor.AtEnd()) {
    minutes = TakeBelow(cursor, kSixty);
  }
  if (!minutes) {
    return std::nullopt;
  }
  const Duration offset = std::chrono::hours{*hours} + std::chrono::minutes{*minutes};
  return east ? offset : -offset;
}

}  // namespace

bool IsMissing(std::string_view text) {
  static constexpr std::array<std::string_view, 9> kNothing{"",    "None", "none", "null",   "NULL",
                                                            "nan", "NaN",  "NaT",  "Unknown"};
  return std::find(kNothing.begin(), kNothing.end(), text) != kNothing.end();
}

std::optional<Timestamp> ParseTimestamp(std::string_view text) {
  TimeCursor cursor(text);
  const std::optional<sys_days> day = TakeDay(cursor);
  if (!day || (!cursor.Take(' ') && !cursor.Take('T'))) {
    return std::nullopt;
  }
  const std::optional<Duration> time = TakeTimeOfDay(cursor);
  if (!time) {
    return std::nullopt;
  }
  const TimePoint at{day->time_since_epoch() + *time};
  if (cursor.AtEnd()) {
    return Timestamp{.at = at};
  }
  const std::optional<Duration> offset = TakeZone(cursor);
  if (!offset || !cursor.AtEnd()) {
    return std::nullopt;
  }
  return Timestamp{.at = at - *offset, .has_zone = true};
}

std::string TimestampText(const Timestamp& stamp) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(stamp.at.time_since_epoch());
  const Duration rest = stamp.at.time_since_epoch() - whole;
  std::string text =
      fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::gmtime(static_cast<std::time_t>(whole.count())));
  if (rest > Duration{0}) {
    text += fmt::format(".{:06}", rest.count());
  }
  return text += stamp.has_zone ? "+00:00" : "";
}

Result<std::optional<TimePoint>> TimestampReader::Read(const io::CsvRow& row, int column) {
  const std::string_view text = row.Text(column);
  if (IsMissing(text)) {
    return std::optional<TimePoint>();
  }
  const std::optional<Timestamp> stamp = ParseTimestamp(text);
  if (!stamp) {
    return row.Bad(column, "a time such as 2020-04-01 00:00:05, with a zone or without");
  }
  if (!zone_) {
    zone_ = stamp->has_zone;
    first_line_ = row.line();
  }
  if (*zone_ != stamp->has_zone) {
    return row.Bad(column, fmt::format("a time {} a zone, as in line {}",
                                       *zone_ ? "with" : "without", first_line_));
  }
  return std::optional(stamp->at);
}

}  // namespace trainyard::trace
