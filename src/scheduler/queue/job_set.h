// SPDX-License-Identifier: Apache-2.0
// Sets of jobs that many events change: by number, and by time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "trainyard/ids.h"
#include "trainyard/state.h"
#include "trainyard/time.h"

namespace trainyard::scheduler {

// Some of the jobs. Insert, Erase and Holds are O(1), Insert amortised.
class JobSet {
 public:
  void Insert(JobId job) {
    if (!Holds(job)) {
      holds_.resize(std::max(holds_.size(), Index(job) + 1));
      holds_[Index(job)] = true;
      ++count_;
      inserted_.push_back(job);
      if (inserted_.size() > 2 * count_ + 64) {
        Compact();
      }
    }
  }
  void Erase(JobId job) {
    if (Holds(job)) {
      holds_[Index(job)] = false;
      --count_;
    }
  }
  [[nodiscard]] bool Holds(JobId job) const {
    return Index(job) < holds_.size() && holds_[Index(job)];
  }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  // Empties the set. By JobId. O(n log n), n: insertions since the last call.
  [[nodiscard]] std::vector<JobId> TakeAll();
  void Serialize(StateStream& state);  // as a std::set of jobs

 private:
  void Compact();  // `inserted_` as a sorted list of the jobs in the set

  std::vector<bool> holds_;  // by JobId
  std::size_t count_ = 0;
  std::vector<JobId> inserted_;  // may be erased by now, and there twice
};

// A time for each of some jobs, the earliest first.
class JobTimes {
 public:
  using InOrder = std::set<std::pair<TimePoint, JobId>>;

  // Replaces the time that the job has; none: it has none any more. O(log jobs).
  void Set(JobId job, std::optional<TimePoint> at) {
    Cancel(job);
    if (!at) {
      return;
    }
    if (at_.size() <= Index(job)) {
      at_.resize(std::max(at_.size() * 2, Index(job) + 1), kEndOfTime);
    }
    at_[Index(job)] = *at;
    in_order_.emplace(*at, job);
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
  // Removes the earliest. REQUIRES: not empty.
  std::pair<TimePoint, JobId> TakeFirst() {
    const std::pair<TimePoint, JobId> first = *in_order_.begin();
    Cancel(first.second);
    return first;
  }

 private:
  InOrder in_order_;
  std::vector<TimePoint> at_;  // by JobId; kEndOfTime: none
};

}  // namespace trainyard::scheduler
