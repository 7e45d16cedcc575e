// SPDX-License-Identifier: Apache-2.0
#include "requests/slurm/slurm_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cmath>
#include <ctime>
#include <span>
#include <utility>
#include <vector>

#include "base/text.h"
#include "live/jobs/job_request.h"

namespace trainyard::requests {
namespace {

constexpr double kMinute = 60;
constexpr double kHour = 60 * kMinute;
constexpr double kDay = 24 * kHour;

TimeReading Is(double seconds) { return {.seconds = seconds, .why = {}}; }
TimeReading IsNot(std::string why) { return {.seconds = {}, .why = std::move(why)}; }

std::optional<int> Digits(std::string_view text) {
  int number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc{} && end == text.data() + text.size() && number >= 0
             ? std::optional(number)
             : std::nullopt;
}

// ------------------------------------------------------------------------------------------- spans

struct Unit {
  double seconds = 0;
  const char* name = "";
  int most = 0;  // behind a larger unit; the first one of a text may be more
};
constexpr Unit kHours{kHour, "hours", 23};
constexpr Unit kMinutes{kMinute, "minutes", 59};
constexpr Unit kSeconds{1, "seconds", 59};
constexpr std::array<Unit, 3> kClockUnits{kHours, kMinutes, kSeconds};

// The parts between colons, each times its unit. `behind`: a larger unit comes before the first.
TimeReading SumOf(std::string_view text, std::span<const Unit> units, bool behind) {
  const std::vector<std::string_view> parts = base::Split(text, ":");
  if (parts.size() > units.size()) {
    return {};
  }
  double sum = 0;
  std::string why;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::optional<int> number = Digits(parts[i]);
    if (!number) {
      return {};
    }
    if ((i > 0 || behind) && *number > units[i].most && why.empty()) {
      why = fmt::format("{} {}; expected 0 to {}", *number, units[i].name, units[i].most);
    }
    sum += *number * units[i].seconds;
  }
  return why.empty() ? Is(sum) : IsNot(std::move(why));
}

// "1-12", "1-12:30:15", "12:30:15", "30:15".
TimeReading SlurmSpan(std::string_view text) {
  const std::span<const Unit> units = kClockUnits;
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) {
    const auto colons = std::count(text.begin(), text.end(), ':');
    return colons == 0 ? TimeReading() : SumOf(text, units.subspan(colons == 1 ? 1 : 0), false);
  }
  const std::optional<int> days = Digits(text.substr(0, dash));
  TimeReading rest = SumOf(text.substr(dash + 1), units, true);
  if (!days || !rest.has_form()) {
    return {};
  }
  return rest.seconds ? Is(*days * kDay + *rest.seconds) : rest;
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

// ----------------------------------------------------------------------------------- days and
// hours

struct Moment {
  int year = 0;
  int month = 1;
  int day = 1;
  int hour = 0;
  int minute = 0;
  int second = 0;
};

Moment LocalMoment(double now) {
  const auto whole = static_cast<std::time_t>(now);
  std::tm parts{};
  localtime_r(&whole, &parts);
  return {.year = parts.tm_year + 1900,
          .month = parts.tm_mon + 1,
          .day = parts.tm_mday,
          .hour = parts.tm_hour,
          .minute = parts.tm_min,
          .second = parts.tm_sec};
}

int DaysOf(int year, int month) {
  const std::chrono::year_month_day_last last{
      std::chrono::year{year},
      std::chrono::month_day_last{std::chrono::month{static_cast<unsigned>(month)}}};
  return static_cast<int>(static_cast<unsigned>(last.day()));
}

// Why no clock shows it, whatever the zone; empty: one does.
std::string MistakeOf(const Moment& at) {
  if (at.month < 1 || at.month > 12) {
    return fmt::format("there is no month {}", at.month);
  }
  if (at.day < 1 || at.day > DaysOf(at.year, at.month)) {
    return fmt::format("there is no day {} in {:04}-{:02}, which has {}", at.day, at.year, at.month,
                       DaysOf(at.year, at.month));
  }
  if (at.hour > kHours.most) {
    return fmt::format("there is no hour {}; expected 00:00 to 23:59", at.hour);
  }
  if (at.minute > kMinutes.most || at.second > kSeconds.most) {
    return fmt::format("there is no {} {}; expected 0 to 59",
                       at.minute > kMinutes.most ? "minute" : "second",
                       at.minute > kMinutes.most ? at.minute : at.second);
  }
  return {};
}

std::tm PartsOf(const Moment& at) {
  std::tm parts{};
  parts.tm_year = at.year - 1900;
  parts.tm_mon = at.month - 1;
  parts.tm_mday = at.day;
  parts.tm_hour = at.hour;
  parts.tm_min = at.minute;
  parts.tm_sec = at.second;
  parts.tm_isdst = -1;  // as it is on that day
  return parts;
}

TimeReading AtLocal(const Moment& at) {
  if (std::string mistake = MistakeOf(at); !mistake.empty()) {
    return IsNot(std::move(mistake));
  }
  std::tm parts = PartsOf(at);
  const auto seconds = static_cast<double>(std::mktime(&parts));
  const bool shown = parts.tm_mday == at.day && parts.tm_hour == at.hour &&
                     parts.tm_min == at.minute && parts.tm_sec == at.second;
  return shown ? Is(seconds)
               : IsNot(fmt::format("{:02}:{:02} does not exist on {:04}-{:02}-{:02}: the clock is "
                                   "put forward past it",
                                   at.hour, at.minute, at.year, at.month, at.day));
}

TimeReading AtUtc(const Moment& at) {
  if (std::string mistake = MistakeOf(at); !mistake.empty()) {
    return IsNot(std::move(mistake));
  }
  std::tm parts = PartsOf(at);
  return Is(static_cast<double>(timegm(&parts)));
}

// The day after it, at the same time.
Moment NextDay(Moment at) {
  if (++at.day > DaysOf(at.year, at.month)) {
    at.day = 1;
    at.year += at.month == 12 ? 1 : 0;
    at.month = at.month % 12 + 1;
  }
  return at;
}

// The day begins then: where the clock is put forward at midnight, after that.
double StartOf(Moment day) {
  day.hour = day.minute = day.second = 0;
  if (const TimeReading at = AtLocal(day); at.seconds) {
    return *at.seconds;
  }
  std::tm parts = PartsOf(day);
  parts.tm_isdst = 0;
  return static_cast<double>(std::mktime(&parts));
}

// The next time at which the clock shows it.
TimeReading NextAtClock(double now, int hour, int minute, int second) {
  Moment at = LocalMoment(now);
  const bool is_today =
      std::array{hour, minute, second} > std::array{at.hour, at.minute, at.second};
  at = is_today ? at : NextDay(at);
  at.hour = hour;
  at.minute = minute;
  at.second = second;
  return AtLocal(at);
}

// ------------------------------------------------------------------------------------------- forms

// Numbers with these signs between them; a blank stands for a T, too. No sign is left over.
std::optional<std::vector<int>> NumbersBetween(std::string_view text, std::string_view signs) {
  std::vector<int> numbers;
  for (const char sign : signs) {
    const std::size_t at = text.find_first_not_of("0123456789");
    const bool fits =
        at != std::string_view::npos && (text[at] == sign || (sign == 'T' && text[at] == ' '));
    const std::optional<int> number = fits ? Digits(text.substr(0, at)) : std::nullopt;
    if (!number) {
      return std::nullopt;
    }
    numbers.push_back(*number);
    text.remove_prefix(at + 1);
  }
  const std::optional<int> last = Digits(text);
  if (!last) {
    return std::nullopt;
  }
  numbers.push_back(*last);
  return numbers;
}

// "2026-11-21T18:00:30Z"
TimeReading ReadDate(std::string_view text) {
  constexpr std::size_t kYearDigits = 4;
  if (text.find('-') != kYearDigits) {
    return {};
  }
  const bool utc = text.ends_with('Z');
  text.remove_suffix(utc ? 1 : 0);
  std::optional<std::vector<int>> numbers;
  for (const std::string_view signs : {"--T::", "--T:", "--"}) {
    numbers = numbers ? numbers : NumbersBetween(text, signs);
  }
  if (!numbers) {
    return {};
  }
  numbers->resize(6);
  const Moment at{.year = (*numbers)[0],
                  .month = (*numbers)[1],
                  .day = (*numbers)[2],
                  .hour = (*numbers)[3],
                  .minute = (*numbers)[4],
                  .second = (*numbers)[5]};
  const bool whole_day = text.find(':') == std::string_view::npos;
  return utc ? AtUtc(at) : whole_day && MistakeOf(at).empty() ? Is(StartOf(at)) : AtLocal(at);
}

// "18:00", "18:00:30", "6:00pm"
TimeReading ReadClock(std::string_view text, double now) {
  std::string lower = live::LowerCase(std::string(text));
  const bool morning = lower.ends_with("am");
  const bool evening = lower.ends_with("pm");
  if (morning || evening) {
    lower.resize(lower.size() - 2);
    lower.resize(lower.find_last_not_of(' ') + 1);
  }
  auto numbers = NumbersBetween(lower, "::");
  numbers = numbers ? numbers : NumbersBetween(lower, ":");
  if (!numbers) {
    return {};
  }
  numbers->resize(3);
  auto [hour, minute, second] = std::array{(*numbers)[0], (*numbers)[1], (*numbers)[2]};
  if (morning || evening) {
    constexpr int kNoon = 12;
    if (hour < 1 || hour > kNoon) {
      return IsNot(fmt::format("there is no hour {} with am or pm; expected 1 to 12", hour));
    }
    hour = hour % kNoon + (evening ? kNoon : 0);
  }
  if (std::string mistake = MistakeOf({.hour = hour, .minute = minute, .second = second});
      !mistake.empty()) {
    return IsNot(std::move(mistake));
  }
  return NextAtClock(now, hour, minute, second);
}

}  // namespace

TimeReading ReadSpan(std::string_view text) {
  const std::optional<double> span = base::ToSpan(text);
  return span ? Is(*span) : SlurmSpan(text);
}

bool IsUnlimited(std::string_view text) {
  const std::string lower = live::LowerCase(std::string(text));
  return lower == "unlimited" || lower == "infinite" || ReadSpan(text).seconds == 0.0;
}

TimeReading ReadTime(std::string_view text, double now) {
  if (text == "now" || text == "today") {
    return Is(now);
  }
  if (text.starts_with("now+")) {
    const std::optional<double> after = CountedSpan(text.substr(4));
    return after ? Is(now + *after) : TimeReading();
  }
  if (text == "tomorrow" || text == "midnight") {
    return Is(StartOf(NextDay(LocalMoment(now))));
  }
  constexpr std::array<std::pair<std::string_view, int>, 4> kNamed{
      {{"elevenses", 11}, {"noon", 12}, {"fika", 15}, {"teatime", 16}}};
  for (const auto& [name, hour] : kNamed) {
    if (text == name) {
      return NextAtClock(now, hour, 0, 0);
    }
  }
  const TimeReading date = ReadDate(text);
  return date.has_form() ? date : ReadClock(text, now);
}

}  // namespace trainyard::requests
