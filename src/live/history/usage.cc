// SPDX-License-Identifier: Apache-2.0
#include "live/history/usage.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace trainyard::live {
namespace {

constexpr double kSecondsOfDay = 24 * 3600;

std::int64_t DayOf(double unix_seconds) {
  return static_cast<std::int64_t>(std::floor(unix_seconds / kSecondsOfDay));
}

// When the day begins, in the engine's time.
TimePoint BeginOf(std::int64_t day, const LiveOptions& options) {
  const double since_zero = static_cast<double>(day) * kSecondsOfDay - options.unix_zero;
  return AtSeconds(since_zero * options.time_scale);
}

Holding HoldingOf(const Grant& grant, TimePoint since, const v1::JobRequest& request,
                  const Cluster& cluster) {
  Holding holding{.since = since,
                  .of = {.user = request.launch().has_owner() ? request.launch().owner().user()
                                                              : request.user(),
                         .account = request.account(),
                         .queue = request.queue(),
                         .model = request.model()}};
  for (const Slice& slice : grant.slices) {
    if (slice.gpus != 0) {
      holding.gpus.emplace_back(cluster.nodes[Index(slice.node)].name, std::popcount(slice.gpus));
    }
  }
  return holding;
}

}  // namespace

void Usage::Note(const model::Action& action, TimePoint at, const v1::JobRequest& request,
                 const Cluster& cluster) {
  const bool gets = action.kind == model::ActionKind::kLaunch ||
                    action.kind == model::ActionKind::kResize ||
                    action.kind == model::ActionKind::kMigrate;
  const bool loses =
      action.kind == model::ActionKind::kPreempt || action.kind == model::ActionKind::kRelease;
  if (!gets && !loses) {
    return;
  }
  if (const auto before = held_.find(action.job); before != held_.end()) {
    ForEachPart(*before->second, at, options_,
                [this](std::int64_t day, UsageKey key, Duration time) {
                  Edit(day)[std::move(key)] += time;
                });
    held_.erase(before);
  }
  if (gets) {
    held_[action.job] =
        std::make_shared<const Holding>(HoldingOf(action.grant, at, request, cluster));
  }
}

std::shared_ptr<const Holding> Usage::HeldBy(JobId job) const {
  const auto found = held_.find(job);
  return found == held_.end() ? nullptr : found->second;
}

Usage::Day& Usage::Edit(std::int64_t number) {
  if (std::exchange(given_out_, false)) {
    days_ = std::make_shared<Days>(*days_);
    own_.clear();
  }
  std::shared_ptr<Day>& own = own_[number];
  if (own == nullptr) {
    std::shared_ptr<const Day>& day = (*days_)[number];
    own = day == nullptr ? std::make_shared<Day>() : std::make_shared<Day>(*day);
    day = own;
  }
  return *own;
}

void Usage::ForEachPart(const Holding& holding, TimePoint until, const LiveOptions& options,
                        const AddPart& add) {
  for (TimePoint from = holding.since; from < until;) {
    std::int64_t number = DayOf(options.UnixSeconds(from));
    TimePoint end = BeginOf(number + 1, options);
    if (end <= from) {  // a rounding: the next day has begun
      end = BeginOf(++number + 1, options);
    }
    end = std::min(end, until);
    for (const auto& [node, gpus] : holding.gpus) {
      UsageKey key = holding.of;
      key.node = node;
      add(number, std::move(key), gpus * (end - from));
    }
    from = end;
  }
}

void Usage::Serialize(StateStream& state) {
  std::map<std::int64_t, Day> days;
  std::map<JobId, Holding> held;
  for (const auto& [number, day] : *days_) {
    days[number] = *day;
  }
  for (const auto& [job, holding] : held_) {
    held[job] = *holding;
  }
  state(days, held);
  if (state.reading()) {
    auto read = std::make_shared<Days>();
    for (auto& [number, day] : days) {
      (*read)[number] = std::make_shared<const Day>(std::move(day));
    }
    days_ = std::move(read);
    own_.clear();
    held_.clear();
    for (auto& [job, holding] : held) {
      held_[job] = std::make_shared<const Holding>(std::move(holding));
    }
  }
}

}  // namespace trainyard::live
