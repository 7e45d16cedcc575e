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

OrderIndex::RunningGroup& OrderIndex::GroupOf(double slope) {
  const auto found = std::find_if(running_.begin(), running_.end(),
                                  [slope](const RunningGroup& g) { return g.slope == slope; });
  if (found != running_.end()) {
    return *found;
  }
  running_.push_back(
      {.slope = slope, .jobs = std::set<std::uint32_t, RunsBefore>(RunsBefore{this})});
  return running_.back();
}

void OrderIndex::PushWaiting(JobId job, int gpus, const Rank& rank) {
  At(job) = {.key = rank.key, .arrival = rank.arrival, .gpus = gpus, .in = Entry::In::kWaiting};
  waiting_[gpus].Push(Index(job), positions_,
                      [this](std::size_t a, std::size_t b) { return EntryBefore(a, b); });
}

void OrderIndex::PushRunning(JobId job, const Rank& rank, double slope, TimePoint now) {
  Entry& entry = At(job);
  entry = {.key = rank.key, .arrival = rank.arrival, .slope = slope, .in = Entry::In::kRunning};
  entry.key[0] -= slope * Micros(now);
  GroupOf(slope).jobs.insert(static_cast<std::uint32_t>(Index(job)));
}

bool OrderIndex::Holds(JobId job) const {
  return Index(job) < entries_.size() && entries_[Index(job)].in != Entry::In::kNothing;
}

void OrderIndex::Erase(JobId job) {
  CHECK(Holds(job));
  Entry& entry = At(job);
  if (entry.in == Entry::In::kRunning) {
    GroupOf(entry.slope).jobs.erase(static_cast<std::uint32_t>(Index(job)));
  } else {
    waiting_[entry.gpus].Erase(
        Index(job), positions_, [this](std::size_t a, std::size_t b) { return EntryBefore(a, b); });
  }
  entry.in = Entry::In::kNothing;
}

OrderIndex::Rank OrderIndex::RankAt(JobId job, TimePoint now) const {
  const Entry& entry = entries_[Index(job)];
  Rank rank{.key = entry.key, .arrival = entry.arrival};
  if (entry.slope != 0) {
    rank.key[0] += entry.slope * Micros(now);
  }
  return rank;
}

OrderIndex::FromWorst::FromWorst(const OrderIndex& index, TimePoint now)
    : index_(index), now_(now) {
  for (const RunningGroup& group : index.running_) {
    if (!group.jobs.empty()) {
      places_.push_back({.next = group.jobs.rbegin(),
                         .end = group.jobs.rend(),
                         .rank = index.RankAt(JobAt(*group.jobs.rbegin()), now)});
    }
  }
}

std::optional<JobId> OrderIndex::FromWorst::Next(const Rank& limit) {
  const auto worst =
      std::max_element(places_.begin(), places_.end(),
                       [](const Place& a, const Place& b) { return a.rank < b.rank; });
  if (worst == places_.end() || !(limit < worst->rank)) {
    return std::nullopt;
  }
  const JobId job = JobAt(*worst->next);
  if (++worst->next == worst->end) {
    places_.erase(worst);
  } else {
    worst->rank = index_.RankAt(JobAt(*worst->next), now_);
  }
  return job;
}

void OrderIndex::Clear() {
  waiting_.clear();
  running_.clear();
  entries_.clear();
  std::fill(positions_.begin(), positions_.end(), kNotInHeap);
}

}  // namespace trainyard
