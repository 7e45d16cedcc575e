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
                             std::pair<std::string_view, Field>{"account", &UsageKey::account},
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
      return Error{ErrorCode::kInvalidArgument, "there is no sum by '" + name +
                                                    "'; expected user, account, queue, "
                                                    "model, node or day"};
    }
  }
  return by;
}

// Adds up what is asked for.
class Adder {
 public:
  Adder(const v1::UsageRequest& request, By by, const std::optional<std::string>& only)
      : request_(request), by_(std::move(by)), only_(only) {}

  void Add(std::int64_t day, const UsageKey& key, const UsageTimes& times) {
    const bool is_asked = (!request_.has_from_day() || day >= request_.from_day()) &&
                          (!request_.has_to_day() || day <= request_.to_day()) &&
                          (!only_ || key.user == *only_);
    if (!is_asked) {
      return;
    }
    UsageKey of;
    for (const Field field : by_.fields) {
      of.*field = key.*field;
    }
    sums_[{by_.day ? day : 0, std::move(of)}] += times;
  }
  [[nodiscard]] v1::UsageReply Reply() const;

 private:
  const v1::UsageRequest& request_;
  const By by_;
  const std::optional<std::string>& only_;
  std::map<std::pair<std::int64_t, UsageKey>, UsageTimes> sums_;
};

// "2026-11-28"
std::string DateText(std::int64_t day) {
  constexpr double kSecondsOfDay = 24 * 3600;
  constexpr std::size_t kDate = 10;
  return base::UtcText(static_cast<double>(day) * kSecondsOfDay).substr(0, kDate);
}

v1::UsageReply Adder::Reply() const {
  v1::UsageReply reply;
  UsageTimes all;
  for (const auto& [of, times] : sums_) {
    v1::UsageRow& row = *reply.add_rows();
    row.set_user(of.second.user);
    row.set_account(of.second.account);
    row.set_queue(of.second.queue);
    row.set_model(of.second.model);
    row.set_node(of.second.node);
    row.set_day(by_.day ? DateText(of.first) : std::string());
    row.set_gpu_micros(times.gpus.count());
    row.set_cpu_given_micros(times.cpus.count());
    row.set_cpu_micros(times.cpus_used.count());
    all += times;
  }
  reply.set_gpu_micros(all.gpus.count());
  reply.set_cpu_given_micros(all.cpus.count());
  reply.set_cpu_micros(all.cpus_used.count());
  return reply;
}

}  // namespace

Result<v1::UsageReply> SumUsage(const HeldUntil& all, const v1::UsageRequest& request,
                                const std::optional<std::string>& only) {
  ASSIGN_OR_RETURN(By by, ByOf(request));
  Adder sums(request, std::move(by), only);
  for (const auto& [number, day] : all.days) {
    for (const auto& [key, times] : *day) {
      sums.Add(number, key, times);
    }
  }
  for (const Holding* const held : all.held) {
    Usage::ForEachPart(*held, all.until, all.options,
                       [&sums](std::int64_t day, const UsageKey& key, const UsageTimes& times) {
                         sums.Add(day, key, times);
                       });
  }
  return sums.Reply();
}

}  // namespace trainyard::live
