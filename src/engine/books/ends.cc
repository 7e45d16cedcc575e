// SPDX-License-Identifier: Apache-2.0
#include "engine/books/ends.h"

#include <algorithm>
#include <utility>

namespace trainyard::engine {
namespace {

auto Sooner(Ends::Records records) {
  return [records](std::size_t a, std::size_t b) {
    const TimePoint x = records[a].forecast.logged;
    const TimePoint y = records[b].forecast.logged;
    return x != y ? x < y : a < b;
  };
}

}  // namespace

std::set<JobId> Ends::jobs() const {
  std::set<JobId> jobs;
  for (const std::uint32_t job : heap_.members()) {
    jobs.insert(JobAt(job));
  }
  return jobs;
}

bool Ends::IsScheduled(JobId job) const {
  return Index(job) < positions_.size() && positions_[Index(job)] != base::kNotInHeap;
}

void Ends::Schedule(Records records, JobId job, TimePoint before) {
  if (!IsScheduled(job)) {
    heap_.Push(Index(job), positions_, Sooner(records));
  } else if (records[Index(job)].forecast.logged != before) {
    heap_.Update(Index(job), positions_, Sooner(records));
  }
}

void Ends::Cancel(Records records, JobId job) {
  if (IsScheduled(job)) {
    heap_.Erase(Index(job), positions_, Sooner(records));
  }
}

JobId Ends::FirstToJoin(Records records) const {
  std::size_t first = heap_.top();
  if (!published_.join_by_priority) {
    return JobAt(first);
  }
  const TimePoint earliest = records[first].forecast.logged;
  const TimePoint until = earliest + FromSeconds(published_.join_relative * Seconds(earliest));
  const auto rank = [records](std::size_t job) {
    return std::pair(records[job].spec->priority, records[job].arrival);
  };
  for (const std::uint32_t job : heap_.members()) {
    if (records[job].forecast.logged <= until && rank(job) < rank(first)) {
      first = job;
    }
  }
  return JobAt(first);
}

TimePoint Ends::JoinedUntil(TimePoint first) const {
  return first +
         std::max(published_.join_absolute, FromSeconds(published_.join_relative * Seconds(first)));
}

bool Ends::Joins(TimePoint logged, TimePoint now) const {
  return logged > now || published_.join_by_priority;
}

}  // namespace trainyard::engine
