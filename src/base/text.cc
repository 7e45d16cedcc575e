// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <numeric>

namespace trainyard {
namespace {

std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string_view NearestName(std::string_view given, std::span<const std::string_view> known) {
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(1, given.size() / 3) + 1;
  for (const std::string_view name : known) {
    const std::size_t distance = EditDistance(given, name);
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

std::string ReplaceAll(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

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

}  // namespace trainyard
