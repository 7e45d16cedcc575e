// SPDX-License-Identifier: Apache-2.0
#include "scheduler/ordered_queue.h"

#include <algorithm>
#include <bit>

#include "base/earlier.h"
#include "scheduler/walk.h"

namespace trainyard {

OrderedQueue::OrderedQueue(const Ordering& ordering, const JobTable& jobs, const Packing& packing,
                           const Settings& settings)
    : ordering_(ordering),
      traits_(ordering.traits()),
      walk_(settings.walk),
      jobs_(jobs),
      packing_(packing),
      plain_(settings.upkeep != Upkeep::kIncremental ||
             settings.walk.former_rank != Walk::FormerRank::kNo),
      oracle_(settings.upkeep == Upkeep::kOracle),
      running_first_(settings.running_first),
      memory_(ordering.NewMemory()),
      schedules_late_(memory_ == nullptr && settings.walk.former_rank == Walk::FormerRank::kNo) {
  if (!plain_ && tracks_running() && packing.names_gpus()) {
    evictions_.emplace(packing.cluster());
  }
}

OrderIndex::Rank OrderedQueue::RankOf(const JobView& view, const Standing& standing) const {
  using Band = OrderIndex::Band;
  return {.band = standing.first                 ? Band::kFirst
                  : view.stay_left > Duration{0} ? Band::kStays
                                                 : Band::kOpen,
          .key = standing.key,
          .waits = running_first_ && view.grant == nullptr,
          .arrival = view.arrival};
}

// When its stay ends, as far as that follows from its present grant.
void OrderedQueue::NoteStay(const JobView& view, TimePoint now) {
  ForgetStay(view.id);
  if (view.stay_left <= Duration{0}) {
    return;
  }
  if (stay_at_.size() <= Index(view.id)) {
    stay_at_.resize(std::max(stay_at_.size() * 2, Index(view.id) + 1), kEndOfTime);
  }
  stay_at_[Index(view.id)] = now + view.stay_left;
  stays_.emplace(now + view.stay_left, view.id);
}

void OrderedQueue::ForgetStay(JobId job) {
  if (Index(job) < stay_at_.size() && stay_at_[Index(job)] != kEndOfTime) {
    stays_.erase({stay_at_[Index(job)], job});
    stay_at_[Index(job)] = kEndOfTime;
  }
}

// Jobs whose stay has ended take their places by their keys.
void OrderedQueue::EndStays(TimePoint now) {
  while (!stays_.empty() && stays_.begin()->first <= now) {
    const JobId job = stays_.begin()->second;
    ForgetStay(job);
    FileLater(job, now);
  }
}

// What a running job holds, for the eviction index.
void OrderedQueue::PutEvictable(JobId job, const Grant& grant) {
  if (filed_grants_.size() <= Index(job)) {
    filed_grants_.resize(std::max(filed_grants_.size() * 2, Index(job) + 1));
  }
  filed_grants_[Index(job)] = grant;
  evictions_->Put(job, grant, index_.FiledRank(job));
}

void OrderedQueue::Unfile(JobId job) {
  if (evictions_ && index_.Runs(job)) {
    evictions_->Remove(job, filed_grants_[Index(job)]);
  }
  index_.Erase(job);
}

// A waiting job now, a running one before it is compared with others.
void OrderedQueue::FileLater(JobId job, TimePoint now) {
  if (plain_ || jobs_.grant(job).gpus == 0) {
    File(job, now);
  } else if (tracks_running()) {
    unfiled_.insert(job);
  }
}

void OrderedQueue::FilePutOff(TimePoint now) {
  while (!unfiled_.empty()) {
    File(*unfiled_.begin(), now);
  }
}

void OrderedQueue::SchedulePutOff(TimePoint now) {
  for (const JobId job : unscheduled_) {
    Reschedule(jobs_.at(job), now);
  }
  unscheduled_.clear();
}

void OrderedQueue::File(JobId job, TimePoint now) {
  unfiled_.erase(job);
  if (plain_) {
    Stale(job);
    return;
  }
  const JobView view = jobs_.at(job);
  const Standing standing = ordering_.StandingOf(view, now, memory_.get());
  const OrderIndex::Rank rank = RankOf(view, standing);
  if (index_.Holds(job)) {
    if (view.grant == nullptr && !index_.Runs(job) && index_.RankAt(job, now) == rank) {
      return;  // it waits already, in its place
    }
    Unfile(job);
  }
  if (view.grant == nullptr) {
    index_.PushWaiting(job, packing_.ClassOf(*view.spec, view.spec->gpus), rank);
  } else if (tracks_running()) {
    const bool slides = (traits_.moves & kWhileServed) != 0;
    index_.PushRunning(job, *view.grant, rank, slides ? standing.slope : 0, now);
    if (evictions_) {
      PutEvictable(job, *view.grant);
    }
  }
}

void OrderedQueue::Reschedule(const JobView& view, TimePoint now) {
  if ((traits_.moves & kAtKnownTimes) == 0) {
    return;
  }
  const std::size_t member = Index(view.id);
  if (member < move_positions_.size() && move_positions_[member] != kNotInHeap) {
    moves_.Erase(member, move_positions_,
                 [this](std::size_t a, std::size_t b) { return MovesSooner(a, b); });
  }
  if (const std::optional<TimePoint> at = ordering_.StandingOf(view, now, memory_.get()).moves_at) {
    ScheduleMove(member, *at);
  }
}

void OrderedQueue::ScheduleMove(std::size_t member, TimePoint at) {
  if (move_at_.size() <= member) {
    move_at_.resize(std::max(move_at_.size() * 2, member + 1), kEndOfTime);
  }
  move_at_[member] = at;
  moves_.Push(member, move_positions_,
              [this](std::size_t a, std::size_t b) { return MovesSooner(a, b); });
}

void OrderedQueue::Enlist(JobId job) {
  list_.push_back({.job = job});
  if (stale_.size() <= Index(job)) {
    stale_.resize(std::max(stale_.size() * 2, Index(job) + 1));
  }
  Stale(job);
}

void OrderedQueue::Delist(JobId job) {
  std::erase_if(list_, [job](const Ranked& ranked) { return ranked.job == job; });
}

void OrderedQueue::Arrive(JobId job, TimePoint now) {
  ordering_.Tell(Occasion::kArrived, jobs_.at(job), now, memory_.get());
  Return(job, now);
}

void OrderedQueue::Return(JobId job, TimePoint now) {
  if (plain_) {
    Enlist(job);
  }
  NoteStay(jobs_.at(job), now);
  File(job, now);
  Reschedule(jobs_.at(job), now);
}

void OrderedQueue::Leave(JobId job) {
  ForgetStay(job);
  unfiled_.erase(job);
  unscheduled_.erase(job);
  if (plain_) {
    Delist(job);
  } else if (index_.Holds(job)) {
    Unfile(job);
  }
  const std::size_t member = Index(job);
  if (member < move_positions_.size() && move_positions_[member] != kNotInHeap) {
    moves_.Erase(member, move_positions_,
                 [this](std::size_t a, std::size_t b) { return MovesSooner(a, b); });
  }
}

void OrderedQueue::LostGpus(JobId job, TimePoint now) {
  ForgetStay(job);
  const JobView view = jobs_.at(job);
  if ((traits_.moves & kOnGrant) != 0) {
    ordering_.Tell(Occasion::kSettled, view, now, memory_.get());
  }
  File(job, now);
  Reschedule(view, now);
}

void OrderedQueue::Changed(JobId job, TimePoint now) {
  if (index_.Holds(job)) {
    Unfile(job);
  }
  File(job, now);
  Reschedule(jobs_.at(job), now);
}

void OrderedQueue::TellDue(TimePoint now) {
  due_.clear();
  const auto sooner = [this](std::size_t a, std::size_t b) { return MovesSooner(a, b); };
  while (!moves_.empty() && move_at_[moves_.top()] <= now) {
    due_.push_back(JobAt(moves_.top()));
    moves_.Erase(moves_.top(), move_positions_, sooner);
  }
  if (due_.empty()) {
    return;
  }
  if (schedules_late_) {
    for (const JobId job : due_) {
      FileLater(job, now);
    }
    return;
  }
  std::sort(due_.begin(), due_.end(), [this](JobId a, JobId b) {
    if (!traits_.sets_wake && move_at_[Index(a)] != move_at_[Index(b)]) {
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
      Delist(job);
      Enlist(job);
    }
    FileLater(job, now);
  }
}

// What has come due by `now`, before keys are compared.
void OrderedQueue::BringUpToDate(const Snapshot& snapshot) {
  TellDue(snapshot.now);
  EndStays(snapshot.now);
  ordering_.Look(snapshot, memory_.get());
}

Selection OrderedQueue::Select(const Snapshot& snapshot, Packing& packing) {
  BringUpToDate(snapshot);
  evicted_.clear();
  refile_.clear();
  if (plain_) {
    return SelectPlain(snapshot, packing);
  }
  if ((traits_.moves & kAlways) != 0) {
    RebuildIndex(snapshot);
  }
  return SelectIncremental(snapshot, packing);
}

void OrderedQueue::RebuildIndex(const Snapshot& snapshot) {
  for (const JobId job : snapshot.jobs->live()) {
    FileLater(job, snapshot.now);
  }
}

std::span<const OrderedQueue::Ranked> OrderedQueue::InOrder(const Snapshot& snapshot) {
  BringUpToDate(snapshot);
  SortList(snapshot.now);
  return list_;
}

// Where time alone does not move a key, it is not asked for again. Returns the position up to which
// all have the ranks of last time.
std::size_t OrderedQueue::RankList(TimePoint now) {
  const bool always = oracle_ || (traits_.moves & kAlways) != 0;
  const bool while_served = (traits_.moves & kWhileServed) != 0;
  std::size_t same = list_.size();
  if (!always && !while_served && !some_stale_) {
    return same;
  }
  some_stale_ = false;  // and what moves is looked at every time
  for (std::size_t i = 0; i < list_.size(); ++i) {
    Ranked& ranked = list_[i];
    const bool moves = always || (while_served && jobs_.grant(ranked.job).gpus > 0);
    if (!moves && !stale_[Index(ranked.job)]) {
      continue;
    }
    const JobView view = jobs_.at(ranked.job);
    OrderIndex::Rank rank = RankOf(view, now);
    if (walk_.former_rank != Walk::FormerRank::kNo) {  // the stable sort keeps ties as they were
      const bool by_submit = walk_.former_rank == Walk::FormerRank::kSubmits;
      rank.arrival =
          by_submit ? static_cast<std::uint64_t>(view.spec->submit.time_since_epoch().count()) : 0;
    }
    if (ranked.gpus == 0 || rank != ranked.rank) {  // new, or moved
      same = std::min(same, i);
    }
    ranked.rank = rank;
    ranked.gpus = view.spec->gpus;
    stale_[Index(ranked.job)] = moves;
  }
  return same;
}

void OrderedQueue::SortList(TimePoint now) {
  // Mostly in the order of last time, with what has arrived at the end.
  const std::size_t same = RankList(now);
  const auto sooner = [](const Ranked& a, const Ranked& b) { return a.rank < b.rank; };
  const auto changed = std::is_sorted_until(
      list_.begin() + static_cast<std::ptrdiff_t>(same > 0 ? same - 1 : 0), list_.end(), sooner);
  if (changed != list_.end()) {
    std::stable_sort(changed, list_.end(), sooner);
    std::inplace_merge(list_.begin(), changed, list_.end(), sooner);
  }
}

std::vector<Demand> OrderedQueue::DemandsOf(std::span<const Ranked> list) {
  std::vector<Demand> demands(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    demands[i].job = list[i].job;
    demands[i].gpus = list[i].gpus;
  }
  return demands;
}

Selection OrderedQueue::SelectPlain(const Snapshot& snapshot, Packing& packing) {
  SortList(snapshot.now);
  std::vector<Demand> demands = DemandsOf(list_);
  if (!walk_.preempt) {  // who runs, runs on
    std::stable_partition(demands.begin(), demands.end(), [this](const Demand& demand) {
      return jobs_.grant(demand.job).gpus > 0;
    });
  }
  packing.Clear();
  return WalkDemands(demands, walk_, jobs_, packing);
}

std::optional<JobId> OrderedQueue::BestOpen(std::span<const DemandClass> closed) const {
  std::optional<JobId> best;
  OrderIndex::Rank best_rank;
  for (const auto& [of, heap] : index_.waiting()) {
    if (heap.empty() || std::find(closed.begin(), closed.end(), of) != closed.end()) {
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
  std::vector<DemandClass> closed;  // those that failed: free GPUs only shrink from here
  while (const std::optional<JobId> job = BestOpen(closed)) {
    const DemandClass of = ClassOf(*job, jobs_.spec(*job).gpus);
    if (std::optional<Grant> grant = Place(*job, snapshot, packing)) {
      index_.Erase(*job);
      refile_.push_back(*job);
      selection.placed.push_back({*job, std::move(*grant)});
      continue;
    }
    selection.blocked.push_back({*job, of.gpus, packing.WhyNot(of), of.kind});
    if (walk_.misfit != Misfit::kSkip) {
      BlockBehind(of, selection);
      break;
    }
    closed.push_back(of);
  }
  for (const JobId job : evicted_) {
    if (index_.Holds(job)) {  // not placed again
      selection.dropped.push_back(job);
    }
  }
  return selection;
}

// In a strict order nobody of another demand class has been tried either.
void OrderedQueue::BlockBehind(const DemandClass& head, Selection& selection) const {
  for (const auto& [of, heap] : index_.waiting()) {
    if (!heap.empty() && !(of == head)) {
      selection.blocked.push_back({JobAt(heap.top()), of.gpus, WaitReason::kBehindHead, of.kind});
    }
  }
}

std::optional<Grant> OrderedQueue::Place(JobId job, const Snapshot& snapshot, Packing& packing) {
  const JobView view = jobs_.at(job);
  const Grant* former = walk_.misfit == Misfit::kEvictTail ? nullptr : view.grant;
  std::optional<Grant> grant = packing.TryAdd(*view.spec, {.gpus = view.spec->gpus}, former);
  if (!grant && walk_.misfit == Misfit::kEvictTail) {
    FilePutOff(snapshot.now);
    grant = PlaceEvictingTail(view, snapshot.now, packing);
  } else if (!grant && walk_.preempt) {
    grant = PlaceByEviction(view, snapshot.now, packing);
  }
  if (grant && evictions_) {
    evictions_->Touch(*grant);
  }
  return grant;
}

std::optional<Grant> OrderedQueue::PlaceByEviction(const JobView& job, TimePoint now,
                                                   Packing& packing) {
  FilePutOff(now);
  const std::optional<double> slope = index_.CommonSlope();
  if (evictions_ && slope &&
      job.spec->gpus <= packing.largest_node(ClassOf(job.id, job.spec->gpus))) {
    return PlaceOnOneNode(job, *slope, now, packing);
  }
  return PlaceFromWorst(job, now, packing);
}

std::optional<Grant> OrderedQueue::PlaceOnOneNode(const JobView& job, double slope, TimePoint now,
                                                  Packing& packing) {
  OrderIndex::Rank limit = index_.RankAt(job.id, now);
  limit.key[0] -= slope * Micros(now);  // as running jobs are filed
  const std::optional<EvictionIndex::Choice> choice =
      evictions_->Find(ClassOf(job.id, job.spec->gpus), limit, packing);
  if (!choice) {
    return std::nullopt;
  }
  std::optional<Grant> grant = TakeFrom(choice->victims, job, packing);
  if (!grant) {  // room, but not as the placement wants it
    return PlaceFromWorst(job, now, packing);
  }
  Evict(choice->victims, now, packing);
  return grant;
}

std::vector<JobId> OrderedQueue::OnNode(const std::vector<const OrderIndex::Running*>& jobs,
                                        NodeId node) const {
  std::vector<JobId> there;
  for (const OrderIndex::Running* job : jobs) {
    const auto is_there = [node](const Slice& slice) { return slice.node == node; };
    const auto lies_there = [&](const Slices& slices) {
      return std::any_of(slices.begin(), slices.end(), is_there);
    };
    if (job->node ? *job->node == node : lies_there(jobs_.grant(job->job).slices)) {
      there.push_back(job->job);
    }
  }
  return there;
}

// Adds the GPUs that evicting the job would free to each node's gain. Returns the first node that
// would then have enough free for the class.
std::optional<NodeId> OrderedQueue::Gain(const OrderIndex::Running& job, const DemandClass& of,
                                         const Packing& packing) {
  const auto add = [&](NodeId node, int gain) {
    gain_[Index(node)] += gain;
    return packing.MayUse(of, node) && packing.free_gpus(node) + gain_[Index(node)] >= of.gpus;
  };
  if (job.node) {
    return add(*job.node, job.gpus) ? job.node : std::nullopt;
  }
  std::optional<NodeId> found;
  for (const Slice& slice : jobs_.grant(job.job).slices) {
    if (add(slice.node, std::popcount(slice.gpus)) && !found) {
      found = slice.node;
    }
  }
  return found;
}

// Those that the job holds and a demand of the class may have.
int OrderedQueue::UsableGpus(const OrderIndex::Running& job, const DemandClass& of) const {
  if (!packing_.several_kinds()) {
    return job.gpus;
  }
  int gpus = 0;
  for (const Slice& slice : jobs_.grant(job.job).slices) {
    gpus += packing_.MayUse(of, slice.node) ? std::popcount(slice.gpus) : 0;
  }
  return gpus;
}

void OrderedQueue::ForgetGain(const std::vector<const OrderIndex::Running*>& jobs) {
  for (const OrderIndex::Running* job : jobs) {
    if (job->node) {
      gain_[Index(*job->node)] = 0;
      continue;
    }
    for (const Slice& slice : jobs_.grant(job->job).slices) {
      gain_[Index(slice.node)] = 0;
    }
  }
}

// Goes through the running jobs from the worst, as long as they rank below `job`, until evicting
// those of one node (for a gang that one node can hold) or all of them makes room. By count the
// outcome is that of a walk over all jobs: see docs/design/0001-engine-shape.md.
std::optional<Grant> OrderedQueue::PlaceFromWorst(const JobView& job, TimePoint now,
                                                  Packing& packing) {
  const DemandClass of = ClassOf(job.id, job.spec->gpus);
  const bool one_node = packing.names_gpus() && of.gpus <= packing.largest_node(of);
  const OrderIndex::Rank rank = index_.RankAt(job.id, now);
  gain_.resize(packing.cluster().nodes.size(), 0);
  OrderIndex::FromWorst from_worst(index_, now);
  std::vector<const OrderIndex::Running*> passed;
  std::vector<JobId> victims;
  int free = packing.free_gpus(of);
  while (const OrderIndex::Running* worst = from_worst.Next(rank)) {
    const int usable = UsableGpus(*worst, of);
    if (usable == 0) {
      continue;
    }
    passed.push_back(worst);
    free += usable;
    if (one_node) {
      const std::optional<NodeId> node = Gain(*worst, of, packing);
      if (!node) {
        continue;
      }
      victims = OnNode(passed, *node);
    } else {
      victims.push_back(worst->job);
      if (free < of.gpus) {
        continue;
      }
    }
    if (std::optional<Grant> grant = TakeFrom(victims, job, packing)) {
      ForgetGain(passed);
      Evict(victims, now, packing);
      return grant;
    }
  }
  ForgetGain(passed);
  return std::nullopt;
}

// Running jobs that rank below `job` lose their GPUs, the worst first, until it fits. What has been
// taken is taken, even if it does not help.
std::optional<Grant> OrderedQueue::PlaceEvictingTail(const JobView& job, TimePoint now,
                                                     Packing& packing) {
  OrderIndex::FromWorst from_worst(index_, now);
  const OrderIndex::Rank rank = index_.RankAt(job.id, now);
  std::vector<JobId> victims;
  std::optional<Grant> grant;
  while (!grant) {
    const OrderIndex::Running* worst = from_worst.Next(rank);
    if (worst == nullptr) {
      break;
    }
    victims.push_back(worst->job);
    packing.Remove(jobs_.grant(worst->job));
    grant = packing.TryAdd(*job.spec, {.gpus = job.spec->gpus}, nullptr);
  }
  for (const JobId victim : victims) {
    LoseTurn(victim, now);
  }
  return grant;
}

// Out of the packing, it waits in its own place of the order and is tried again there.
void OrderedQueue::LoseTurn(JobId victim, TimePoint now) {
  const OrderIndex::Rank rank = index_.RankAt(victim, now);
  Unfile(victim);
  index_.PushWaiting(victim, ClassOf(victim, jobs_.grant(victim).gpus), rank);
  evicted_.push_back(victim);
}

// A grant for `job` if it fits once `victims` have lost theirs; otherwise nothing changes.
std::optional<Grant> OrderedQueue::TakeFrom(const std::vector<JobId>& victims, const JobView& job,
                                            Packing& packing) {
  for (const JobId victim : victims) {
    packing.Remove(jobs_.grant(victim));
  }
  std::optional<Grant> grant = packing.TryAdd(*job.spec, {.gpus = job.spec->gpus}, job.grant);
  if (!grant) {
    for (const JobId victim : victims) {
      packing.Add(jobs_.grant(victim));
    }
  }
  return grant;
}

// Of `victims` (worst first, out of the packing) those that do not stand in the way keep their
// GPUs; the others wait in their own place of the order and are tried again there.
void OrderedQueue::Evict(const std::vector<JobId>& victims, TimePoint now, Packing& packing) {
  for (auto victim = victims.rbegin(); victim != victims.rend(); ++victim) {
    const Grant& held = jobs_.grant(*victim);
    if (packing.IsFree(held)) {
      packing.Add(held);
      continue;
    }
    LoseTurn(*victim, now);
  }
}

// In the order of the walk.
void OrderedQueue::TellSettled(std::span<const JobId> jobs, TimePoint now) {
  std::vector<JobView> views;
  std::vector<std::pair<OrderIndex::Rank, const JobView*>> in_order;
  views.reserve(jobs.size());
  in_order.reserve(jobs.size());
  for (const JobId job : jobs) {
    views.push_back(jobs_.at(job));
    in_order.emplace_back(RankOf(views.back(), now), &views.back());
  }
  std::sort(in_order.begin(), in_order.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [rank, view] : in_order) {
    ordering_.Tell(Occasion::kSettled, *view, now, memory_.get());
    if (jobs_.grant(view->id).gpus > 0 ||
        (index_.Holds(view->id) && index_.RankAt(view->id, now) != RankOf(*view, now))) {
      refile_.push_back(view->id);
    }
    Reschedule(*view, now);
  }
}

// What the selection has brought for those of `changed` and those that were due.
void OrderedQueue::FollowUp(std::span<const JobId> changed, TimePoint now) {
  const unsigned moves = traits_.moves;
  if ((moves & (kOnGrant | kAtKnownTimes)) == 0) {
    return;
  }
  std::vector<JobId> touched(changed.begin(), changed.end());
  touched.insert(touched.end(), due_.begin(), due_.end());
  std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  if (schedules_late_) {
    unscheduled_.insert(touched.begin(), touched.end());
  } else if ((moves & kOnGrant) != 0) {
    TellSettled(touched, now);
  } else {
    for (const JobId job : touched) {
      Reschedule(jobs_.at(job), now);
    }
  }
}

void OrderedQueue::Settle(const Snapshot& snapshot, std::span<const JobId> changed) {
  const TimePoint now = snapshot.now;
  FollowUp(changed, now);
  for (const JobId job : changed) {
    NoteStay(jobs_.at(job), now);
  }
  if (plain_) {
    for (const JobId job : changed) {
      Stale(job);
    }
  } else {
    refile_.insert(refile_.end(), changed.begin(), changed.end());
    std::sort(refile_.begin(), refile_.end());
    refile_.erase(std::unique(refile_.begin(), refile_.end()), refile_.end());
    for (const JobId job : refile_) {
      FileLater(job, now);
    }
  }
  if (snapshot.jobs_waiting > 0) {
    SchedulePutOff(now);
    if ((traits_.moves & kAlways) == 0) {  // otherwise all are filed at the next decision
      FilePutOff(now);
    }
  }
  SetWake(snapshot);
}

void OrderedQueue::Serialize(StateStream& state) {
  if (memory_) {
    memory_->Serialize(state);
  }
  index_.Serialize(state, jobs_);
  std::map<JobId, TimePoint> moves;
  for (const std::uint32_t member : moves_.members()) {
    moves.emplace(JobAt(member), move_at_[member]);
  }
  std::vector<bool> stale;  // of the jobs in the list
  stale.reserve(list_.size());
  for (const Ranked& ranked : list_) {
    stale.push_back(stale_[Index(ranked.job)]);
  }
  state(moves, list_, stale, wake_at_, stays_, unfiled_, unscheduled_);
  if (state.reading() && stale.size() == list_.size()) {
    Resume(moves, stale);
  }
}

// The rest follows from what has been read.
void OrderedQueue::Resume(const std::map<JobId, TimePoint>& moves, const std::vector<bool>& stale) {
  for (const auto& [job, at] : moves) {
    ScheduleMove(Index(job), at);
  }
  for (std::size_t i = 0; i < list_.size(); ++i) {
    const std::size_t job = Index(list_[i].job);
    stale_.resize(std::max(stale_.size(), job + 1));
    stale_[job] = stale[i];
    some_stale_ = some_stale_ || stale[i];
  }
  for (const auto& [at, job] : stays_) {
    stay_at_.resize(std::max(stay_at_.size(), Index(job) + 1), kEndOfTime);
    stay_at_[Index(job)] = at;
  }
  if (evictions_) {
    for (const JobId job : jobs_.live()) {
      if (index_.Runs(job)) {
        PutEvictable(job, jobs_.grant(job));
      }
    }
  }
}

void OrderedQueue::SetWake(const Snapshot& snapshot) {
  if (traits_.sets_wake) {
    wake_at_ = ordering_.NextWake(snapshot, memory_.get());
  } else if (moves_.empty() || snapshot.jobs_waiting == 0) {
    wake_at_ = std::nullopt;  // where nobody waits, the order decides nothing
  } else {
    wake_at_ = move_at_[moves_.top()];
  }
  wake_at_ = Earlier(wake_at_, StayWake(snapshot));
}

// When a stay ends whose job a waiting one would then displace, as far as keys tell.
std::optional<TimePoint> OrderedQueue::StayWake(const Snapshot& snapshot) const {
  if (stays_.empty() || snapshot.jobs_waiting == 0 || !walk_.preempt) {
    return std::nullopt;
  }
  const std::optional<OrderIndex::Rank> best = BestWaiting(snapshot);
  if (!best) {
    return std::nullopt;
  }
  const auto usable = std::find_if(stays_.begin(), stays_.end(), [&](const auto& stay) {
    return (traits_.moves & kAlways) != 0 ||
           *best < RankAfterStay(stay.second, stay.first, snapshot.now);
  });
  return usable == stays_.end() ? std::nullopt : std::optional(usable->first);
}

std::optional<OrderIndex::Rank> OrderedQueue::BestWaiting(const Snapshot& snapshot) const {
  if (!plain_) {
    const std::optional<JobId> best = BestOpen({});
    return best ? std::optional(index_.RankAt(*best, snapshot.now)) : std::nullopt;
  }
  std::optional<OrderIndex::Rank> best;
  for (const Ranked& ranked : list_) {
    if (jobs_.grant(ranked.job).gpus == 0) {
      const OrderIndex::Rank rank = RankOf(jobs_.at(ranked.job), snapshot.now);
      best = best ? std::min(*best, rank) : rank;
    }
  }
  return best;
}

// The rank that a running job will have at the end of its stay, unless its key moves otherwise than
// by its slope.
OrderIndex::Rank OrderedQueue::RankAfterStay(JobId job, TimePoint end, TimePoint now) const {
  OrderIndex::Rank rank;
  if (plain_) {
    const JobView view = jobs_.at(job);
    const Standing standing = ordering_.StandingOf(view, now, memory_.get());
    rank = RankOf(view, standing);
    if ((traits_.moves & kWhileServed) != 0) {
      rank.key[0] += standing.slope * Micros(end - now);
    }
  } else {
    rank = index_.RankAt(job, end);
  }
  rank.band = rank.band == OrderIndex::Band::kStays ? OrderIndex::Band::kOpen : rank.band;
  return rank;
}

}  // namespace trainyard
