// SPDX-License-Identifier: Apache-2.0
#include "live/view/usage_sums.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/try.h"

namespace trainyard::live {
namespace {

using Field = std::string UsageKey::*;
constexpr std::array kFields{std::pair<std::string_view, Field>{"user", &UsageKey::user},
                             std::pair<std::string_view, Field>{"queue", &UsageKey::queue},
                             std::pair<std::string_view, Field>{"model", &UsageKey::model},
                             std::pair<std::string_view, Field>{"node", &UsageKey::node}};

// What a row is the sum for.
struct By {
  std::vector<Field> fields{};
  bool day = false;
};

Result<By> ByOf(const v1::UsageRequest& request) {
  By by;
  for (const std::string& name : request.by()) {
    const auto* const known = std::find_if(
        kFields.begin(), kFields.end(), [&name](const auto& field) { return field.first == name; });
    if (known != kFields.end()) {
      by.fields.push_back(known->second);
    } else if (name == "day") {
      by.day = true;
    } else {
      return Error{ErrorCode::kInvalidArgument,
                   "there is no sum by '" + name + "'; expected user, queue, model, node or day"};
    }
  }
  return by;
}

using Sums = std::map<std::pair<std::int64_t, UsageKey>, Duration>;

void AddDay(std::int64_t number, const Usage::Day& day, const By& by,
            const std::optional<std::string>& only, Sums& sums) {
  for (const auto& [key, time] : day) {
    if (only && key.user != *only) {
      continue;
    }
    UsageKey of;
    for (const Field field : by.fields) {
      of.*field = key.*field;
    }
    sums[{by.day ? number : 0, std::move(of)}] += time;
  }
}

// "2026-11-28"
std::string DateText(std::int64_t day) {
  constexpr double kSecondsOfDay = 24 * 3600;
  constexpr std::size_t kDate = 10;
  return base::UtcText(static_cast<double>(day) * kSecondsOfDay).substr(0, kDate);
}

}  // namespace

Result<v1::UsageReply> SumUsage(const Usage::Days& days, const v1::UsageRequest& request,
                                const std::optional<std::string>& only) {
  ASSIGN_OR_RETURN(const By by, ByOf(request));
  Sums sums;
  for (const auto& [number, day] : days) {
    const bool is_asked = (!request.has_from_day() || number >= request.from_day()) &&
                          (!request.has_to_day() || number <= request.to_day());
    if (is_asked) {
      AddDay(number, *day, by, only, sums);
    }
  }
  v1::UsageReply reply;
  for (const auto& [of, time] : sums) {
    v1::UsageRow& row = *reply.add_rows();
    row.set_user(of.second.user);
    row.set_queue(of.second.queue);
    row.set_model(of.second.model);
    row.set_node(of.second.node);
    row.set_day(by.day ? DateText(of.first) : std::string());
    row.set_gpu_micros(time.count());
    reply.set_gpu_micros(reply.gpu_micros() + time.count());
  }
  return reply;
}

}  // namespace trainyard::live
