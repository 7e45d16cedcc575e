// SPDX-License-Identifier: Apache-2.0
#include "engine/order_index.h"

#include <algorithm>

#include "base/check.h"

namespace trainyard {

OrderIndex::Entry& OrderIndex::At(JobId job) {
  if (entries_.size() <= Index(job)) {
    entries_.resize(std::max(entries_.size() * 2, Index(job) + 1));
  }
  return entries_[Index(job)];
}

bool OrderIndex::EntryBefore(std::size_t a, std::size_t b) const {
  const Entry& x = entries_[a];
  const Entry& y = entries_[b];
  if (const auto order = x.key <=> y.key; order != 0) {
    return order < 0;
  }
  return x.arrival < y.arrival;
}

IndexedHeap& OrderIndex::RunningHeap(double slope) {
  const auto found = std::find_if(running_.begin(), running_.end(),
                                  [slope](const RunningGroup& g) { return g.slope == slope; });
  if (found != running_.end()) {
    return found->heap;
  }
  running_.push_back({.slope = slope, .heap = {}});
  return running_.back().heap;
}

void OrderIndex::PushWaiting(JobId job, int gpus, const Rank& rank) {
  At(job) = {.key = rank.key, .arrival = rank.arrival, .gpus = gpus};
  waiting_[gpus].Push(Index(job), positions_,
                      [this](std::size_t a, std::size_t b) { return EntryBefore(a, b); });
}

void OrderIndex::PushRunning(JobId job, const Rank& rank, double slope, TimePoint now) {
  Entry& entry = At(job);
  entry = {.key = rank.key, .arrival = rank.arrival, .slope = slope, .running = true};
  entry.key[0] -= slope * Micros(now);
  RestoreRunning(job);
}

void OrderIndex::RestoreRunning(JobId job) {
  RunningHeap(At(job).slope)
      .Push(Index(job), positions_,
            [this](std::size_t a, std::size_t b) { return EntryBefore(b, a); });
}

bool OrderIndex::Holds(JobId job) const {
  return Index(job) < positions_.size() && positions_[Index(job)] != kNotInHeap;
}

void OrderIndex::Erase(JobId job) {
  CHECK(Holds(job));
  const Entry& entry = At(job);
  if (entry.running) {
    RunningHeap(entry.slope)
        .Erase(Index(job), positions_,
               [this](std::size_t a, std::size_t b) { return EntryBefore(b, a); });
  } else {
    waiting_[entry.gpus].Erase(
        Index(job), positions_, [this](std::size_t a, std::size_t b) { return EntryBefore(a, b); });
  }
}

OrderIndex::Rank OrderIndex::RankAt(JobId job, TimePoint now) const {
  const Entry& entry = entries_[Index(job)];
  Rank rank{.key = entry.key, .arrival = entry.arrival};
  if (entry.slope != 0) {
    rank.key[0] += entry.slope * Micros(now);
  }
  return rank;
}

std::optional<JobId> OrderIndex::WorstRunning(TimePoint now) const {
  std::optional<JobId> worst;
  Rank worst_rank;
  for (const RunningGroup& group : running_) {
    if (group.heap.empty()) {
      continue;
    }
    const JobId job = JobAt(group.heap.top());
    const Rank rank = RankAt(job, now);
    if (!worst || worst_rank < rank) {
      worst = job;
      worst_rank = rank;
    }
  }
  return worst;
}

void OrderIndex::Clear() {
  waiting_.clear();
  running_.clear();
  std::fill(positions_.begin(), positions_.end(), kNotInHeap);
}

}  // namespace trainyard
