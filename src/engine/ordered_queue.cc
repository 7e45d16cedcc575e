// SPDX-License-Identifier: Apache-2.0
#include "engine/ordered_queue.h"

#include <algorithm>

#include "base/check.h"
#include "engine/walk.h"

namespace trainyard {

OrderedQueue::OrderedQueue(const Ordering& ordering, const Walk& walk, const JobTable& jobs,
                           bool plain)
    : ordering_(ordering),
      walk_(walk),
      jobs_(jobs),
      plain_(plain || walk.former_rank),
      memory_(ordering.NewMemory()) {}

OrderIndex::Rank OrderedQueue::RankOf(const JobView& view) const {
  return {.key = ordering_.KeyOf(view, memory_.get()), .arrival = view.arrival};
}

void OrderedQueue::File(JobId job, TimePoint now) {
  if (plain_) {
    return;
  }
  if (index_.Holds(job)) {
    index_.Erase(job);
  }
  const JobView view = jobs_.at(job);
  if (view.grant == nullptr) {
    index_.PushWaiting(job, view.spec->gpus, RankOf(view));
  } else if (tracks_running()) {
    const bool slides = (ordering_.moves() & kWhileServed) != 0;
    index_.PushRunning(job, RankOf(view), slides ? ordering_.Slope(view) : 0, now);
  }
}

void OrderedQueue::Reschedule(const JobView& view, TimePoint now) {
  if ((ordering_.moves() & kAtKnownTimes) == 0) {
    return;
  }
  const auto sooner = [this](std::size_t a, std::size_t b) {
    return move_at_[a] != move_at_[b] ? move_at_[a] < move_at_[b] : a < b;
  };
  const std::size_t member = Index(view.id);
  if (member < move_positions_.size() && move_positions_[member] != kNotInHeap) {
    moves_.Erase(member, move_positions_, sooner);
  }
  if (const std::optional<TimePoint> at = ordering_.NextMove(view, now, memory_.get())) {
    if (move_at_.size() <= member) {
      move_at_.resize(std::max(move_at_.size() * 2, member + 1), kEndOfTime);
    }
    move_at_[member] = *at;
    moves_.Push(member, move_positions_, sooner);
  }
}

void OrderedQueue::Arrive(JobId job, TimePoint now) {
  const JobView view = jobs_.at(job);
  ordering_.Tell(Occasion::kArrived, view, now, memory_.get());
  if (plain_) {
    list_.push_back(job);
  }
  File(job, now);
  Reschedule(view, now);
}

void OrderedQueue::Leave(JobId job) {
  if (plain_) {
    std::erase(list_, job);
  } else if (index_.Holds(job)) {
    index_.Erase(job);
  }
  const std::size_t member = Index(job);
  if (member < move_positions_.size() && move_positions_[member] != kNotInHeap) {
    moves_.Erase(member, move_positions_, [this](std::size_t a, std::size_t b) {
      return move_at_[a] != move_at_[b] ? move_at_[a] < move_at_[b] : a < b;
    });
  }
}

void OrderedQueue::LostGpus(JobId job, TimePoint now) {
  const JobView view = jobs_.at(job);
  if ((ordering_.moves() & kOnGrant) != 0) {
    ordering_.Tell(Occasion::kSettled, view, now, memory_.get());
  }
  File(job, now);
  Reschedule(view, now);
}

void OrderedQueue::TellDue(TimePoint now) {
  due_.clear();
  const auto sooner = [this](std::size_t a, std::size_t b) {
    return move_at_[a] != move_at_[b] ? move_at_[a] < move_at_[b] : a < b;
  };
  while (!moves_.empty() && move_at_[moves_.top()] <= now) {
    due_.push_back(JobAt(moves_.top()));
    moves_.Erase(moves_.top(), move_positions_, sooner);
  }
  if (due_.empty()) {
    return;
  }
  std::sort(due_.begin(), due_.end(), [this](JobId a, JobId b) {
    const JobView x = jobs_.at(a);
    const JobView y = jobs_.at(b);
    if (walk_.largest_first && x.spec->gpus != y.spec->gpus) {
      return x.spec->gpus > y.spec->gpus;
    }
    return x.arrival < y.arrival;
  });
  for (const JobId job : due_) {
    ordering_.Tell(Occasion::kDue, jobs_.at(job), now, memory_.get());
    if (plain_) {  // behind its equals
      std::erase(list_, job);
      list_.push_back(job);
    }
    File(job, now);
  }
}

Selection OrderedQueue::Select(const Snapshot& snapshot, Packing& packing) {
  TellDue(snapshot.now);
  evicted_.clear();
  refile_.clear();
  if (plain_) {
    return SelectPlain(snapshot, packing);
  }
  if ((ordering_.moves() & kAlways) != 0) {
    RebuildIndex(snapshot);
  }
  return SelectIncremental(snapshot, packing);
}

void OrderedQueue::RebuildIndex(const Snapshot& snapshot) {
  index_.Clear();
  for (const JobId job : snapshot.jobs->live()) {
    File(job, snapshot.now);
  }
}

Selection OrderedQueue::SelectPlain(const Snapshot& /*snapshot*/, Packing& packing) {
  struct Ranked {
    OrderIndex::Rank rank;
    Demand demand;
  };
  std::vector<Ranked> ranked;
  ranked.reserve(list_.size());
  for (const JobId job : list_) {
    const JobView view = jobs_.at(job);
    OrderIndex::Rank rank = RankOf(view);
    if (walk_.former_rank) {
      rank.arrival = 0;  // the stable sort keeps ties as they were
    }
    ranked.push_back({rank, {job, view.spec->gpus}});
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Ranked& a, const Ranked& b) { return a.rank < b.rank; });
  std::vector<Demand> demands;
  demands.reserve(ranked.size());
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    list_[i] = ranked[i].demand.job;
    demands.push_back(ranked[i].demand);
  }
  packing.Clear();
  return WalkDemands(demands, walk_, jobs_, packing);
}

std::optional<JobId> OrderedQueue::BestOpen(std::span<const int> closed) const {
  std::optional<JobId> best;
  OrderIndex::Rank best_rank;
  for (const auto& [gpus, heap] : index_.waiting()) {
    if (heap.empty() || std::find(closed.begin(), closed.end(), gpus) != closed.end()) {
      continue;
    }
    const JobId job = JobAt(heap.top());
    const OrderIndex::Rank rank = index_.RankAt(job, TimePoint{});
    if (!best || rank < best_rank) {
      best = job;
      best_rank = rank;
    }
  }
  return best;
}

Selection OrderedQueue::SelectIncremental(const Snapshot& snapshot, Packing& packing) {
  Selection selection;
  std::vector<int> closed;  // demand classes that failed: free GPUs only shrink from here
  while (const std::optional<JobId> job = BestOpen(closed)) {
    const int gpus = jobs_.at(*job).spec->gpus;
    if (std::optional<Grant> grant = Place(*job, snapshot, packing)) {
      index_.Erase(*job);
      refile_.push_back(*job);
      selection.placed.push_back({*job, std::move(*grant)});
      continue;
    }
    selection.blocked.push_back({*job, gpus, packing.WhyNot(gpus)});
    if (walk_.misfit == Misfit::kStop) {
      break;
    }
    closed.push_back(gpus);
  }
  for (const JobId job : evicted_) {
    if (index_.Holds(job)) {  // not placed again
      selection.dropped.push_back(job);
    }
  }
  return selection;
}

std::optional<Grant> OrderedQueue::Place(JobId job, const Snapshot& snapshot, Packing& packing) {
  const JobView view = jobs_.at(job);
  std::optional<Grant> grant = packing.TryAdd(*view.spec, view.spec->gpus, view.grant);
  if (!grant && walk_.preempt) {
    grant = PlaceByEviction(job, snapshot, packing);
  }
  return grant;
}

// Takes running jobs out, the worst first, until the job fits; what was taken out waits in its own
// place of the order and is tried again there (its former GPUs first). By count this gives exactly
// the outcome of a walk over all jobs: see docs/architecture.md, "The walk".
std::optional<Grant> OrderedQueue::PlaceByEviction(JobId job, const Snapshot& snapshot,
                                                   Packing& packing) {
  const TimePoint now = snapshot.now;
  const OrderIndex::Rank rank = index_.RankAt(job, now);
  const JobView view = jobs_.at(job);
  const std::size_t first = evicted_.size();
  std::optional<Grant> grant;
  while (!grant) {
    const std::optional<JobId> worst = index_.WorstRunning(now);
    if (!worst || index_.RankAt(*worst, now) < rank) {
      break;
    }
    index_.Erase(*worst);
    evicted_.push_back(*worst);
    packing.Remove(*jobs_.at(*worst).grant);
    grant = packing.TryAdd(*view.spec, view.spec->gpus, view.grant);
  }
  for (std::size_t i = evicted_.size(); i > first; --i) {
    const JobId out = evicted_[i - 1];
    const JobView evicted = jobs_.at(out);
    if (grant) {
      index_.PushWaiting(out, evicted.spec->gpus, index_.RankAt(out, now));
    } else {
      packing.Add(*evicted.grant);
      index_.RestoreRunning(out);
    }
  }
  if (!grant) {
    evicted_.resize(first);
  }
  return grant;
}

void OrderedQueue::Settle(const Snapshot& snapshot, std::span<const JobId> changed) {
  const TimePoint now = snapshot.now;
  const unsigned moves = ordering_.moves();
  if ((moves & (kOnGrant | kAtKnownTimes)) != 0) {
    std::vector<JobId> touched(changed.begin(), changed.end());
    touched.insert(touched.end(), due_.begin(), due_.end());
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    std::vector<std::pair<OrderIndex::Rank, JobId>> in_order;
    for (const JobId job : touched) {
      in_order.emplace_back(RankOf(jobs_.at(job)), job);
    }
    std::sort(in_order.begin(), in_order.end());
    for (const auto& [rank, job] : in_order) {
      const JobView view = jobs_.at(job);
      if ((moves & kOnGrant) != 0) {
        ordering_.Tell(Occasion::kSettled, view, now, memory_.get());
        refile_.push_back(job);
      }
      Reschedule(view, now);
    }
  }
  if (!plain_) {
    refile_.insert(refile_.end(), changed.begin(), changed.end());
    std::sort(refile_.begin(), refile_.end());
    refile_.erase(std::unique(refile_.begin(), refile_.end()), refile_.end());
    for (const JobId job : refile_) {
      File(job, now);
    }
  }
  SetWake(snapshot);
}

void OrderedQueue::SetWake(const Snapshot& snapshot) {
  if (ordering_.sets_wake()) {
    wake_at_ = ordering_.NextWake(snapshot, memory_.get());
  } else if (moves_.empty()) {
    wake_at_ = std::nullopt;
  } else {
    wake_at_ = move_at_[moves_.top()];
  }
}

}  // namespace trainyard
