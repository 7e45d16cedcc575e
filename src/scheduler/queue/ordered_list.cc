// SPDX-License-Identifier: Apache-2.0
#include "scheduler/queue/ordered_list.h"

#include <algorithm>

#include "scheduler/queue/backfill.h"

namespace trainyard::scheduler {

void OrderedList::Enlist(JobId job) {
  list_.push_back({.job = job});
  stale_.Insert(job);
}

void OrderedList::Delist(JobId job) {
  std::erase_if(list_, [job](const Ranked& ranked) { return ranked.job == job; });
  stale_.Erase(job);
}

void OrderedList::Note(JobId job, JobChange change, TimePoint now) {
  standings_.Note(job, change, now);
  if (change == JobChange::kLeft) {
    Delist(job);
  } else if (change == JobChange::kAdmitted || change == JobChange::kReturned) {
    Enlist(job);
  } else {
    stale_.Insert(job);
  }
}

std::span<const Ranked> OrderedList::InOrder(const Snapshot& snapshot) {
  const bool has_equals = standings_.walk().former_rank != Walk::FormerRank::kNo;
  standings_.TellDue(snapshot.now, [&](JobId job) {
    if (has_equals) {  // the job goes behind its equals
      Delist(job);
      Enlist(job);
    }
    stale_.Insert(job);
  });
  standings_.EndStays(snapshot.now, [this](JobId job) { stale_.Insert(job); });
  standings_.BeginDecision(snapshot);
  Sort(list_, stale_, snapshot.now);
  return list_;
}

// The stable sort of a former order keeps ties as they were.
OrderIndex::Rank OrderedList::RankInList(const JobView& view, TimePoint now) const {
  OrderIndex::Rank rank = standings_.RankOf(view, now);
  switch (standings_.walk().former_rank) {
    case Walk::FormerRank::kNo:
      break;
    case Walk::FormerRank::kKeys:
      rank.arrival = 0;
      break;
    case Walk::FormerRank::kSubmits:
      rank.arrival = static_cast<std::uint64_t>(view.spec->submit.time_since_epoch().count());
      break;
  }
  return rank;
}

Selection OrderedList::Select(const Snapshot& snapshot, Packing& packing) {
  const Standings& all = standings_;
  if (all.walk().misfit == Misfit::kReserve) {
    return Backfill(InOrder(snapshot), all, snapshot.now, packing);
  }
  std::vector<Demand> demands = DemandsOf(InOrder(snapshot));
  if (!all.walk().preempt) {  // running jobs run on
    PutRunningFirst(demands, all.jobs());
  }
  packing.Clear();
  return WalkDemands(demands, all.walk(), all.jobs(), packing);
}

std::optional<TimePoint> OrderedList::Adopted(const Snapshot& snapshot,
                                              std::span<const JobId> changed) {
  standings_.FollowUp(changed, snapshot.now, [](const JobView& /*view*/) {});
  for (const JobId job : changed) {
    standings_.NoteStay(standings_.jobs().at(job), snapshot.now);
    stale_.Insert(job);
  }
  return standings_.NextWake(snapshot, StayEnd(snapshot));
}

// When a stay ends whose job a waiting one would then displace, as far as keys tell. A packer also
// goes by the order of the running jobs.
std::optional<TimePoint> OrderedList::StayEnd(const Snapshot& snapshot) const {
  const Standings& all = standings_;
  if (!all.StaysMatter(snapshot)) {
    return std::nullopt;
  }
  std::optional<OrderIndex::Rank> best;
  for (const Ranked& ranked : list_) {
    if (all.jobs().grant(ranked.job).gpus == 0) {
      const OrderIndex::Rank rank = all.RankOf(all.jobs().at(ranked.job), snapshot.now);
      best = best ? std::min(*best, rank) : rank;
    }
  }
  if (!best) {
    return std::nullopt;
  }
  const bool keys_tell = !all.Move(kAlways);
  return all.FirstStayEnd([&](JobId job, TimePoint end) {
    return !keys_tell || *best < all.RankAfterStay(job, end, snapshot.now);
  });
}

void OrderedList::Serialize(StateStream& state) {
  std::vector<bool> stale;  // of the jobs in the list
  stale.reserve(list_.size());
  for (const Ranked& ranked : list_) {
    stale.push_back(stale_.Holds(ranked.job));
  }
  OrderIndex no_index;
  JobSet nothing_postponed;
  standings_.Serialize(state, no_index, list_, stale, nothing_postponed);
  if (state.reading() && state.good()) {
    for (std::size_t i = 0; i < list_.size(); ++i) {
      if (stale[i]) {
        stale_.Insert(list_[i].job);
      }
    }
  }
}

std::vector<Demand> DemandsOf(std::span<const Ranked> list) {
  std::vector<Demand> demands(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    demands[i].job = list[i].job;
    demands[i].gpus = list[i].gpus;
  }
  return demands;
}

}  // namespace trainyard::scheduler
