// SPDX-License-Identifier: Apache-2.0
#include "trace/job_times.h"

#include <algorithm>
#include <cctype>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/text.h"
#include "model/job_fields.h"

namespace trainyard::trace {
namespace {

bool IsDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
}

// "07", "7", "7.25" where decimals may be there.
std::optional<double> DigitsOf(std::string_view text, bool may_have_decimals) {
  const std::size_t point = may_have_decimals ? text.find('.') : std::string_view::npos;
  if (!IsDigits(text.substr(0, point)) ||
      (point != std::string_view::npos && !IsDigits(text.substr(point + 1)))) {
    return std::nullopt;
  }
  return base::ToNumber(text);
}

// Takes "1-" or "1 days " from the front. False: what is there are no days.
bool TakeDays(std::string_view& text, std::optional<double>& days) {
  constexpr std::string_view kDay = " day";
  std::size_t end = text.find('-');
  std::size_t behind = end + 1;
  if (const std::size_t at = text.find(kDay); at != std::string_view::npos) {
    end = at;
    behind = text.find_first_not_of("s, ", at + kDay.size());  // "1 day, 2:00:00"
  } else if (end == std::string_view::npos) {
    return true;
  }
  days = DigitsOf(text.substr(0, end), false);
  text.remove_prefix(std::min(behind, text.size()));
  return days.has_value() && !text.empty();
}

void ShiftTime(Duration by, TimePoint& at) { at -= by; }
void ShiftTime(Duration by, std::optional<TimePoint>& at) {
  if (at) {
    *at -= by;
  }
}
void ShiftTime(Duration by, std::vector<SoftDeadline>& deadlines) {
  for (SoftDeadline& deadline : deadlines) {
    deadline.at -= by;
  }
}
template <typename T>
void ShiftTime(Duration /*by*/, T& /*no_time*/) {}

}  // namespace

std::optional<double> ParseClock(std::string_view text, bool two_parts) {
  constexpr double kSixty = 60;
  constexpr double kDay = 86400;
  std::optional<double> days;
  if (!TakeDays(text, days)) {
    return std::nullopt;
  }
  const std::vector<std::string_view> parts = base::Split(text, ":");
  const std::size_t fewest = days || two_parts ? 2 : 3;
  if (parts.size() < fewest || parts.size() > 3) {
    return std::nullopt;
  }
  double seconds = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::optional<double> part = DigitsOf(parts[i], i + 1 == parts.size() && i > 0);
    if (!part || (i > 0 && *part >= kSixty)) {
      return std::nullopt;
    }
    seconds = seconds * kSixty + *part;
  }
  if (days && parts.size() == 2) {  // hours and minutes
    seconds *= kSixty;
  }
  return days.value_or(0) * kDay + seconds;
}

std::optional<double> ParseSpan(std::string_view text) {
  if (base::ToNumber(text)) {
    return std::nullopt;
  }
  const std::optional<double> clock = ParseClock(text);
  return clock ? clock : base::ToSpan(text);
}

void CountFrom(TimePoint zero, JobSpec& job) {
  const Duration by = zero.time_since_epoch();
  model::ForEachJobField([&]<typename Owner, typename T>(const model::JobField<Owner, T>& field) {
    if constexpr (std::is_same_v<Owner, JobSpec>) {
      ShiftTime(by, job.*field.member);
    }
  });
  if (!job.traits || (!job.traits->begin && job.traits->deadlines.empty())) {
    return;
  }
  auto traits = std::make_shared<JobTraits>(*job.traits);
  model::ForEachJobField([&]<typename Owner, typename T>(const model::JobField<Owner, T>& field) {
    if constexpr (std::is_same_v<Owner, JobTraits>) {
      ShiftTime(by, (*traits).*field.member);
    }
  });
  job.traits = std::move(traits);
}

}  // namespace trainyard::trace
