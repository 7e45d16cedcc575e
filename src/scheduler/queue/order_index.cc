// SPDX-License-Identifier: Apache-2.0
#include "scheduler/queue/order_index.h"

#include <algorithm>

#include "base/check.h"

namespace trainyard::scheduler {

OrderIndex::Entry& OrderIndex::At(JobId job) {
  if (entries_.size() <= Index(job)) {
    entries_.resize(std::max(entries_.size() * 2, Index(job) + 1));
  }
  return entries_[Index(job)];
}

OrderIndex::RunningGroup& OrderIndex::GroupOf(double slope) {
  const auto found = std::find_if(running_.begin(), running_.end(),
                                  [slope](const RunningGroup& g) { return g.slope == slope; });
  if (found != running_.end()) {
    return *found;
  }
  return running_.emplace_back(RunningGroup{.slope = slope, .jobs = {}});
}

void OrderIndex::PushWaiting(JobId job, const DemandClass& of, const Rank& rank) {
  CHECK(!Holds(job));
  At(job) = {.rank = rank, .of = of, .in = Entry::In::kWaiting};
  waiting_[of].Push(Index(job), positions_,
                    [this](std::size_t a, std::size_t b) { return WaitsBefore(a, b); });
}

void OrderIndex::PushRunning(JobId job, const Grant& grant, const Rank& rank, double slope,
                             TimePoint now) {
  CHECK(!Holds(job));
  Entry entry{.rank = rank, .slope = slope, .in = Entry::In::kRunning};
  entry.rank.key[0] -= slope * Micros(now);
  Insert(job, entry, grant);
}

void OrderIndex::Insert(JobId job, const Entry& entry, const Grant& grant) {
  At(job) = entry;
  Running running{.rank = entry.rank, .job = job, .gpus = grant.gpus, .node = std::nullopt};
  if (grant.slices.size() == 1) {
    running.node = grant.slices.front().node;
  }
  GroupOf(entry.slope).jobs.insert(running);
}

// Neither the shapes of heaps nor the order of groups decide anything: ranks are all different.
void OrderIndex::Serialize(StateStream& state, const JobTable& jobs) {
  std::map<JobId, Entry> entries;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].in != Entry::In::kNothing) {
      entries.emplace(JobAt(i), entries_[i]);
    }
  }
  state(entries);
  if (!state.reading()) {
    return;
  }
  for (const auto& [job, entry] : entries) {
    if (entry.in == Entry::In::kRunning) {
      Insert(job, entry, jobs.grant(job));
    } else {
      PushWaiting(job, entry.of, entry.rank);
    }
  }
}

bool OrderIndex::Holds(JobId job) const {
  return Index(job) < entries_.size() && entries_[Index(job)].in != Entry::In::kNothing;
}

void OrderIndex::Erase(JobId job) {
  CHECK(Holds(job));
  Entry& entry = At(job);
  if (entry.in == Entry::In::kRunning) {
    GroupOf(entry.slope).jobs.erase({.rank = entry.rank});
  } else {
    waiting_[entry.of].Erase(Index(job), positions_,
                             [this](std::size_t a, std::size_t b) { return WaitsBefore(a, b); });
  }
  entry.in = Entry::In::kNothing;
}

std::optional<double> OrderIndex::CommonSlope() const {
  std::optional<double> slope;
  for (const RunningGroup& group : running_) {
    if (group.jobs.empty()) {
      continue;
    }
    if (slope) {
      return std::nullopt;
    }
    slope = group.slope;
  }
  return slope.value_or(0);
}

OrderIndex::Rank OrderIndex::RankAt(JobId job, TimePoint now) const {
  const Entry& entry = entries_[Index(job)];
  Rank rank = entry.rank;
  if (entry.slope != 0) {
    rank.key[0] += entry.slope * Micros(now);
  }
  return rank;
}

OrderIndex::FromWorst::FromWorst(const OrderIndex& index, TimePoint now) : now_(now) {
  for (const RunningGroup& group : index.running_) {
    if (!group.jobs.empty()) {
      places_.push_back(
          {.next = group.jobs.rbegin(), .end = group.jobs.rend(), .slope = group.slope});
      Look(places_.back());
    }
  }
}

void OrderIndex::FromWorst::Look(Place& place) const {
  place.rank = place.next->rank;
  place.rank.key[0] += place.slope * Micros(now_);
}

const OrderIndex::Running* OrderIndex::FromWorst::Next(const Rank& limit) {
  const auto worst =
      std::max_element(places_.begin(), places_.end(),
                       [](const Place& a, const Place& b) { return a.rank < b.rank; });
  if (worst == places_.end() || !(limit < worst->rank)) {
    return nullptr;
  }
  const Running* running = &*worst->next;
  if (++worst->next == worst->end) {
    places_.erase(worst);
  } else {
    Look(*worst);
  }
  return running;
}

}  // namespace trainyard::scheduler
