// SPDX-License-Identifier: Apache-2.0
#include "engine/ordered_queue.h"

#include <algorithm>
#include <bit>

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
    if (!ordering_.sets_wake() && move_at_[Index(a)] != move_at_[Index(b)]) {
      return move_at_[Index(a)] < move_at_[Index(b)];
    }
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
    grant = PlaceByEviction(view, snapshot.now, packing);
  }
  return grant;
}

std::vector<JobId> OrderedQueue::OnNode(const std::vector<JobId>& jobs, NodeId node) const {
  std::vector<JobId> there;
  std::copy_if(jobs.begin(), jobs.end(), std::back_inserter(there), [this, node](JobId job) {
    const Slices& slices = jobs_.grant(job).slices;
    return std::any_of(slices.begin(), slices.end(),
                       [node](const Slice& slice) { return slice.node == node; });
  });
  return there;
}

// Goes through the running jobs from the worst, as long as they rank below `job`, until evicting
// those of one node (for a gang that one node can hold) or all of them makes room. By count the
// outcome is that of a walk over all jobs: see docs/design/0001-engine-shape.md.
std::optional<Grant> OrderedQueue::PlaceByEviction(const JobView& job, TimePoint now,
                                                   Packing& packing) {
  const int gpus = job.spec->gpus;
  const bool one_node = packing.names_gpus() && gpus <= packing.cluster().largest_node();
  const OrderIndex::Rank rank = index_.RankAt(job.id, now);
  OrderIndex::FromWorst from_worst(index_, now);
  std::vector<JobId> passed;
  std::optional<Grant> grant;
  int free = packing.free_gpus();
  gain_.resize(packing.cluster().nodes.size(), 0);
  while (!grant) {
    const std::optional<JobId> worst = from_worst.Next(rank);
    if (!worst) {
      break;
    }
    passed.push_back(*worst);
    const Grant& held = jobs_.grant(*worst);
    free += held.gpus;
    if (!one_node) {
      if (free >= gpus) {
        grant = TakeFrom(passed, job, now, packing);
      }
      continue;
    }
    for (const Slice& slice : held.slices) {
      gain_[Index(slice.node)] += std::popcount(slice.gpus);
      if (!grant && packing.free_gpus(slice.node) + gain_[Index(slice.node)] >= gpus) {
        grant = TakeFrom(OnNode(passed, slice.node), job, now, packing);
      }
    }
  }
  for (const JobId one : passed) {
    for (const Slice& slice : jobs_.grant(one).slices) {
      gain_[Index(slice.node)] = 0;
    }
  }
  return grant;
}

// Evicts `victims` (worst first) for `job` if it then fits. Those that do not stand in the way keep
// their GPUs; the others wait in their own place of the order and are tried again there.
std::optional<Grant> OrderedQueue::TakeFrom(const std::vector<JobId>& victims, const JobView& job,
                                            TimePoint now, Packing& packing) {
  for (const JobId victim : victims) {
    packing.Remove(jobs_.grant(victim));
  }
  std::optional<Grant> grant = packing.TryAdd(*job.spec, job.spec->gpus, job.grant);
  for (auto victim = victims.rbegin(); victim != victims.rend(); ++victim) {
    if (packing.IsFree(jobs_.grant(*victim))) {
      packing.Add(jobs_.grant(*victim));
      continue;
    }
    const OrderIndex::Rank rank = index_.RankAt(*victim, now);
    index_.Erase(*victim);
    index_.PushWaiting(*victim, jobs_.grant(*victim).gpus, rank);
    evicted_.push_back(*victim);
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
  } else if (moves_.empty() || snapshot.jobs_waiting == 0) {
    wake_at_ = std::nullopt;  // where nobody waits, the order decides nothing
  } else {
    wake_at_ = move_at_[moves_.top()];
  }
}

}  // namespace trainyard
