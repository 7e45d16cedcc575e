// SPDX-License-Identifier: Apache-2.0
#include "cli/live/slurm_time.h"

#include <array>
#include <charconv>
#include <cmath>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"

namespace trainyard::cli {
namespace {

constexpr double kMinute = 60;
constexpr double kHour = 60 * kMinute;
constexpr double kDay = 24 * kHour;

std::optional<int> Digits(std::string_view text) {
  int number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc{} && end == text.data() + text.size() && number >= 0
             ? std::optional(number)
             : std::nullopt;
}

// The parts between colons, each times its unit.
std::optional<double> SumOf(std::string_view text, std::vector<double> units) {
  const std::vector<std::string_view> parts = base::Split(text, ":");
  if (parts.size() > units.size()) {
    return std::nullopt;
  }
  double sum = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::optional<int> number = Digits(parts[i]);
    if (!number || (i > 0 && units[i] < kHour && *number >= 60)) {
      return std::nullopt;
    }
    sum += *number * units[i];
  }
  return sum;
}

// "90", "1hour", "30minutes": Slurm's units, alone or in the plural.
std::optional<double> CountedSpan(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 5> kUnits{
      {{"second", 1}, {"minute", kMinute}, {"hour", kHour}, {"day", kDay}, {"week", 7 * kDay}}};
  const std::size_t end = text.find_first_not_of("0123456789");
  const std::optional<int> count = Digits(text.substr(0, end));
  if (!count || end == std::string_view::npos) {
    return count;
  }
  const std::string_view unit = text.substr(end);
  for (const auto& [name, seconds] : kUnits) {
    if (unit == name || unit == std::string(name) + "s") {
      return *count * seconds;
    }
  }
  return base::ToSpan(text);
}

// So long after the midnight before, some days later, as the clock on the wall shows it.
double AtClock(double now, double after_midnight, int days) {
  const auto whole = static_cast<std::time_t>(now);
  std::tm parts{};
  localtime_r(&whole, &parts);
  const int seconds = static_cast<int>(after_midnight);
  parts.tm_mday += days;
  parts.tm_hour = seconds / static_cast<int>(kHour);
  parts.tm_min = seconds / static_cast<int>(kMinute) % 60;
  parts.tm_sec = seconds % 60;
  parts.tm_isdst = -1;
  return static_cast<double>(std::mktime(&parts));
}

// The next time at which the clock shows it.
double NextAtClock(double now, double after_midnight) {
  const double today = AtClock(now, after_midnight, 0);
  return today > now ? today : AtClock(now, after_midnight, 1);
}

}  // namespace

std::optional<double> SlurmSpan(std::string_view text) {
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) {
    const bool has_hours = base::Split(text, ":").size() == 3;
    return text.find(':') == std::string_view::npos ? std::nullopt
           : has_hours                              ? SumOf(text, {kHour, kMinute, 1})
                                                    : SumOf(text, {kMinute, 1});
  }
  const std::optional<int> days = Digits(text.substr(0, dash));
  const std::optional<double> rest = SumOf(text.substr(dash + 1), {kHour, kMinute, 1});
  return days && rest ? std::optional(*days * kDay + *rest) : std::nullopt;
}

std::optional<double> SlurmTime(std::string_view text, double now) {
  if (text == "now" || text == "today") {
    return now;
  }
  if (text.starts_with("now+")) {
    const std::optional<double> after = CountedSpan(text.substr(4));
    return after ? std::optional(now + *after) : std::nullopt;
  }
  if (text == "tomorrow") {
    return AtClock(now, 0, 1);
  }
  constexpr std::array<std::pair<std::string_view, double>, 3> kNamed{
      {{"midnight", 0}, {"noon", 12 * kHour}, {"teatime", 16 * kHour}}};
  for (const auto& [name, after_midnight] : kNamed) {
    if (text == name) {
      return NextAtClock(now, after_midnight);
    }
  }
  if (text.find(':') == std::string_view::npos) {
    return std::nullopt;
  }
  const std::optional<double> clock = SumOf(text, {kHour, kMinute, 1});
  return clock && *clock < kDay ? std::optional(NextAtClock(now, *clock)) : std::nullopt;
}

}  // namespace trainyard::cli
