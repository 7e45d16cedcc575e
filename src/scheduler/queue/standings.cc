// SPDX-License-Identifier: Apache-2.0
#include "scheduler/queue/standings.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "base/earlier.h"

namespace trainyard::scheduler {

Standings::Standings(const Ordering& ordering, const JobTable& jobs, const QueueRules& rules)
    : ordering_(ordering),
      traits_(ordering.traits()),
      jobs_(jobs),
      rules_(rules),
      memory_(ordering.NewMemory()),
      schedules_late_(memory_ == nullptr && rules.walk.former_rank == Walk::FormerRank::kNo) {}

Standings::Rank Standings::RankOf(const JobView& view, const Standing& standing) const {
  using Band = OrderIndex::Band;
  Key key = standing.key;
  for (double& component : key) {
    if (std::isnan(component)) [[unlikely]] {
      job_without_key_ = view.id;
      component = std::numeric_limits<double>::infinity();
    }
  }
  return {.band = standing.first                 ? Band::kFirst
                  : view.stay_left > Duration{0} ? Band::kStays
                                                 : Band::kOpen,
          .key = key,
          .waits = rules_.running_first && view.grant == nullptr,
          .arrival = view.arrival};
}

Standings::Rank Standings::RankAfterStay(JobId job, TimePoint end, TimePoint now) const {
  const JobView view = jobs_.at(job);
  const Standing standing = Of(view, now);
  Rank rank = RankOf(view, standing);
  if (Move(kWhileServed)) {
    rank.key[0] += standing.slope * Micros(end - now);
  }
  return OrderIndex::WithoutStay(rank);
}

std::vector<JobId> Standings::Waiting(TimePoint now) const {
  std::vector<std::pair<Rank, JobId>> ranked;
  for (const JobId job : jobs_.live()) {
    if (jobs_.grant(job).gpus == 0) {
      ranked.emplace_back(RankOf(jobs_.at(job), now), job);
    }
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<JobId> jobs;
  jobs.reserve(ranked.size());
  for (const auto& [rank, job] : ranked) {
    jobs.push_back(job);
  }
  return jobs;
}

void Standings::Note(JobId job, JobChange change, TimePoint now) {
  if (change == JobChange::kLeft) {
    stays_.Cancel(job);
    moves_.Cancel(job);
    postponed_moves_.erase(job);
    return;
  }
  const JobView view = jobs_.at(job);
  if (change == JobChange::kAdmitted) {
    ordering_.Notify(JobEvent::kArrived, view, now, memory_.get());
  }
  if (change == JobChange::kAdmitted || change == JobChange::kReturned) {
    NoteStay(view, now);
  } else if (change == JobChange::kLostGpus) {
    stays_.Cancel(job);
    if (Move(kOnGrant)) {
      ordering_.Notify(JobEvent::kSettled, view, now, memory_.get());
    }
  }
  Reschedule(view, now);
}

void Standings::NoteStay(const JobView& view, TimePoint now) {
  const bool stays = view.stay_left > Duration{0};
  stays_.Set(view.id, stays ? std::optional(now + view.stay_left) : std::nullopt);
}

void Standings::Reschedule(const JobView& view, TimePoint now) {
  if (Move(kAtKnownTimes)) {
    moves_.Set(view.id, Of(view, now).moves_at);
  }
}

// In the order in which the ordering is told of them.
std::vector<JobId> Standings::TakeDue(TimePoint now) {
  std::vector<std::pair<TimePoint, JobId>> due;
  while (moves_.IsDue(now)) {
    due.push_back(moves_.TakeFirst());
  }
  if (!schedules_late_) {
    std::sort(due.begin(), due.end(), [this](const auto& a, const auto& b) {
      if (!traits_.sets_wake && a.first != b.first) {
        return a.first < b.first;
      }
      const JobView x = jobs_.at(a.second);
      const JobView y = jobs_.at(b.second);
      if (rules_.walk.largest_first && x.spec->gpus != y.spec->gpus) {
        return x.spec->gpus > y.spec->gpus;
      }
      return x.arrival < y.arrival;
    });
  }
  std::vector<JobId> jobs;
  jobs.reserve(due.size());
  for (const auto& [at, job] : due) {
    jobs.push_back(job);
  }
  return jobs;
}

std::vector<JobId> Standings::ChangedOrDue(std::span<const JobId> changed) const {
  std::vector<JobId> jobs(changed.begin(), changed.end());
  jobs.insert(jobs.end(), due_.begin(), due_.end());
  std::sort(jobs.begin(), jobs.end());
  jobs.erase(std::unique(jobs.begin(), jobs.end()), jobs.end());
  return jobs;
}

std::vector<JobView> Standings::ViewsOf(std::span<const JobId> jobs) const {
  std::vector<JobView> views;
  views.reserve(jobs.size());
  for (const JobId job : jobs) {
    views.push_back(jobs_.at(job));
  }
  return views;
}

std::vector<std::pair<Standings::Rank, const JobView*>> Standings::InWalkOrder(
    std::span<const JobView> views, TimePoint now) const {
  std::vector<std::pair<Rank, const JobView*>> ranked;
  ranked.reserve(views.size());
  for (const JobView& view : views) {
    ranked.emplace_back(RankOf(view, now), &view);
  }
  std::sort(ranked.begin(), ranked.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  return ranked;
}

std::optional<TimePoint> Standings::NextWake(const Snapshot& snapshot,
                                             std::optional<TimePoint> stay_end) {
  if (snapshot.jobs_waiting > 0) {
    for (const JobId job : postponed_moves_) {
      Reschedule(jobs_.at(job), snapshot.now);
    }
    postponed_moves_.clear();
  }
  std::optional<TimePoint> move;
  if (traits_.sets_wake) {
    move = ordering_.NextWake(snapshot, memory_.get());
  } else if (!moves_.empty() && snapshot.jobs_waiting > 0) {  // else the order decides nothing
    move = moves_.in_order().begin()->first;
  }
  wake_at_ = base::Earlier(move, stay_end);
  return wake_at_;
}

void Standings::Serialize(StateStream& state, OrderIndex& index, std::vector<Ranked>& list,
                          std::vector<bool>& stale, JobSet& postponed_inserts) {
  if (memory_) {
    memory_->Serialize(state);
  }
  index.Serialize(state, jobs_);
  std::map<JobId, TimePoint> moves;
  for (const auto& [at, job] : moves_.in_order()) {
    moves.emplace(job, at);
  }
  JobTimes::InOrder stays = stays_.in_order();
  state(moves, list, stale, wake_at_, stays, postponed_inserts, postponed_moves_);
  if (!state.reading()) {
    return;
  }
  if (stale.size() != list.size()) {
    state.Fail();
    return;
  }
  for (const auto& [job, at] : moves) {
    moves_.Set(job, at);
  }
  for (const auto& [at, job] : stays) {
    stays_.Set(job, at);
  }
}

}  // namespace trainyard::scheduler
