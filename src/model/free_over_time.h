// SPDX-License-Identifier: Apache-2.0
// How many GPUs are free, and when: what reservations are made in.
#pragma once

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include "trainyard/time.h"

namespace trainyard::model {

// From some time on, for ever. The number is constant between known times; all operations are O(of
// these).
class FreeOverTime {
 public:
  FreeOverTime(TimePoint from, int gpus) : free_{{from, gpus}} {}

  // From a time on and until another, which may be the end of time; what is before the first is
  // left out. More may be taken than there is.
  void Take(TimePoint from, TimePoint until, int gpus) { Add(from, until, -gpus); }
  void Give(TimePoint from, TimePoint until, int gpus) { Add(from, until, gpus); }

  [[nodiscard]] int free_now() const { return free_.begin()->second; }
  // When the number changes for the first time; end of time: never.
  [[nodiscard]] TimePoint next_change() const {
    const auto next = std::next(free_.begin());
    return next == free_.end() ? kEndOfTime : next->first;
  }
  // The first time, not before `least`, from which so many are free without a break for so long;
  // end of time: never.
  [[nodiscard]] TimePoint EarliestStart(int gpus, Duration takes, TimePoint least = {}) const {
    std::optional<TimePoint> start;
    for (auto part = free_.begin(); part != free_.end(); ++part) {
      if (start && part->first >= EndOf(*start, takes)) {
        break;
      }
      const auto next = std::next(part);
      if (part->second < gpus) {
        start.reset();
      } else if (!start && (next == free_.end() || next->first > least)) {
        start = std::max(part->first, least);
      }
    }
    return start.value_or(kEndOfTime);
  }
  // Whether so many are free from the first time on and until then.
  [[nodiscard]] bool HasUntil(TimePoint end, int gpus) const {
    return std::all_of(free_.begin(), free_.lower_bound(end),
                       [gpus](const auto& part) { return part.second >= gpus; });
  }

  [[nodiscard]] static TimePoint EndOf(TimePoint start, Duration takes) {
    return takes < kEndOfTime - start ? start + takes : kEndOfTime;
  }

 private:
  void Add(TimePoint from, TimePoint until, int gpus) {
    from = std::max(from, free_.begin()->first);
    if (gpus == 0 || from >= until) {
      return;
    }
    if (until != kEndOfTime) {
      Cut(until);
    }
    for (auto part = Cut(from); part != free_.end() && part->first < until; ++part) {
      part->second += gpus;
    }
  }
  // The part that begins at that time.
  std::map<TimePoint, int>::iterator Cut(TimePoint at) {
    const auto next = free_.lower_bound(at);
    return next != free_.end() && next->first == at
               ? next
               : free_.emplace_hint(next, at, std::prev(next)->second);
  }

  std::map<TimePoint, int> free_;  // each until the next
};

}  // namespace trainyard::model
