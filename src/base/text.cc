// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <ctime>
#include <numeric>
#include <utility>

namespace trainyard::base {
namespace {

// Letters inserted, left out or exchanged, and neighbours swapped.
std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before_last, last);
    std::swap(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t exchanged = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, exchanged});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

constexpr std::array<std::pair<char, double>, 4> kUnitsOfTime{
    {{'d', 86400}, {'h', 3600}, {'m', 60}, {'s', 1}}};

}  // namespace

std::string_view NearestName(std::string_view given, std::span<const std::string_view> known) {
  const std::string lower_given = Lower(given);
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(1, given.size() / 3) + 1;
  for (const std::string_view name : known) {
    const std::size_t distance = EditDistance(lower_given, Lower(name));
    if (distance < best_distance) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

std::string UnknownName(std::string_view what, std::string_view given,
                        std::span<const std::string_view> known) {
  std::string text = "unknown " + std::string(what) + " '" + std::string(given) + "'";
  if (const std::string_view near = NearestName(given, known); !near.empty()) {
    text += "; did you mean '" + std::string(near) + "'?";
  }
  return text + "; known: " + (known.empty() ? "none" : Join(known, ", "));
}

std::string Join(std::span<const std::string_view> parts, std::string_view between) {
  std::string text;
  for (const std::string_view part : parts) {
    text += text.empty() ? "" : between;
    text += part;
  }
  return text;
}

std::vector<std::string_view> Split(std::string_view text, std::string_view at_any) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find_first_of(at_any);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(end + 1);
  }
}

std::string_view Trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::optional<double> ToNumber(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::optional<double> ToSpan(std::string_view text, double unit) {
  if (const std::optional<double> number = ToNumber(text)) {
    return number;
  }
  double seconds = 0;
  auto next = kUnitsOfTime.begin();
  if (text.empty()) {
    return std::nullopt;
  }
  while (!text.empty()) {
    const std::size_t end = text.find_first_of("dhms");
    const std::optional<double> number = ToNumber(text.substr(0, end));
    while (end < text.size() && next != kUnitsOfTime.end() && next->first != text[end]) {
      ++next;
    }
    if (!number || *number < 0 || end >= text.size() || next == kUnitsOfTime.end()) {
      return std::nullopt;
    }
    seconds += *number * (next++)->second;
    text.remove_prefix(end + 1);
  }
  return seconds / unit;
}

std::string ReplaceAll(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

std::string UtcText(double unix_seconds) {
  return fmt::format("{:%FT%TZ}", fmt::gmtime(static_cast<std::time_t>(std::floor(unix_seconds))));
}

std::string UtcNow() { return UtcText(static_cast<double>(std::time(nullptr))); }

std::string FileNameOf(std::string_view text) {
  std::string name(text);
  for (char& c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' ||
                       c == '.' || c == '=';
    c = plain ? c : '-';
  }
  if (!name.empty() && name.front() == '.') {  // hidden, or the folder above
    name.front() = '-';
  }
  return name;
}

std::string ShortDuration(double seconds) {
  if (seconds < 0) {
    return "-" + ShortDuration(-seconds);
  }
  // The bounds are where rounding would give 1000ms, 60.0s, 60m00s or 100h00m.
  if (seconds == 0) {
    return "0s";
  }
  if (seconds < 0.0005) {
    return "<1ms";
  }
  if (seconds < 0.9995) {
    return fmt::format("{:.0f}ms", seconds * 1e3);
  }
  if (seconds < 59.95) {
    return fmt::format("{:.1f}s", seconds);
  }
  if (seconds < 3599.5) {
    const long long whole = std::llround(seconds);
    return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  }
  if (seconds < 100 * 3600 - 30) {
    const long long minutes = std::llround(seconds / 60);
    return fmt::format("{}h{:02}m", minutes / 60, minutes % 60);
  }
  const long long hours = std::llround(seconds / 3600);
  return fmt::format("{}d{:02}h", hours / 24, hours % 24);
}

}  // namespace trainyard::base
