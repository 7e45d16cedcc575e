// SPDX-License-Identifier: Apache-2.0
// A time for each of some jobs, the earliest first.
#pragma once

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "trainyard/ids.h"
#include "trainyard/time.h"

namespace trainyard {

class JobTimes {
 public:
  using InOrder = std::set<std::pair<TimePoint, JobId>>;

  // Replaces the time that the job has. O(log jobs).
  void Set(JobId job, TimePoint at) {
    Cancel(job);
    if (at_.size() <= Index(job)) {
      at_.resize(std::max(at_.size() * 2, Index(job) + 1), kEndOfTime);
    }
    at_[Index(job)] = at;
    in_order_.emplace(at, job);
  }
  // Nothing happens where the job has no time. O(log jobs).
  void Cancel(JobId job) {
    if (Index(job) < at_.size() && at_[Index(job)] != kEndOfTime) {
      in_order_.erase({at_[Index(job)], job});
      at_[Index(job)] = kEndOfTime;
    }
  }
  // By time, then by JobId.
  [[nodiscard]] const InOrder& in_order() const { return in_order_; }
  [[nodiscard]] bool empty() const { return in_order_.empty(); }
  // The earliest is due by `now`.
  [[nodiscard]] bool IsDue(TimePoint now) const {
    return !in_order_.empty() && in_order_.begin()->first <= now;
  }

 private:
  InOrder in_order_;
  std::vector<TimePoint> at_;  // by JobId; kEndOfTime: none
};

}  // namespace trainyard
