// SPDX-License-Identifier: Apache-2.0
#include "scheduler/ordered_queue.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "base/earlier.h"
#include "scheduler/walk.h"

namespace trainyard::scheduler {

void JobSet::Compact() {
  std::erase_if(inserted_, [this](JobId job) { return !Holds(job); });
  std::sort(inserted_.begin(), inserted_.end());
  inserted_.erase(std::unique(inserted_.begin(), inserted_.end()), inserted_.end());
}

std::vector<JobId> JobSet::TakeAll() {
  Compact();
  for (const JobId job : inserted_) {
    Erase(job);
  }
  return std::exchange(inserted_, {});
}

void JobSet::Serialize(StateStream& state) {
  Compact();
  std::set<JobId> jobs(inserted_.begin(), inserted_.end());
  state(jobs);
  if (state.reading()) {
    *this = {};
    for (const JobId job : jobs) {
      Insert(job);
    }
  }
}

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
      displacement_(jobs, index_),
      schedules_late_(memory_ == nullptr && settings.walk.former_rank == Walk::FormerRank::kNo) {
  if (!plain_ && walk_.preempt && packing.names_gpus()) {
    evictions_.emplace(packing.cluster());
  }
}

OrderIndex::Rank OrderedQueue::RankOf(const JobView& view, const Standing& standing) const {
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
          .waits = running_first_ && view.grant == nullptr,
          .arrival = view.arrival};
}

std::vector<JobId> OrderedQueue::Waiting(TimePoint now) const {
  std::vector<std::pair<OrderIndex::Rank, JobId>> ranked;
  for (const JobId job : jobs_.live()) {
    if (const Grant* const held = jobs_.brief(job).grant; held == nullptr || held->gpus == 0) {
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

// Notes when the stay of the job ends, as far as that follows from its present grant.
void OrderedQueue::NoteStay(const JobView& view, TimePoint now) {
  const bool stays = view.stay_left > Duration{0};
  stays_.Set(view.id, stays ? std::optional(now + view.stay_left) : std::nullopt);
}

void OrderedQueue::Withdraw(JobId job) {
  if (evictions_ && index_.Runs(job)) {
    evictions_->Remove(job);
  }
  inexact_.Erase(job);
  index_.Erase(job);
}

// Inserts a waiting job now, a running one before it is compared with others.
void OrderedQueue::InsertLater(JobId job, TimePoint now) {
  if (plain_ || jobs_.grant(job).gpus == 0) {
    Insert(job, now);
  } else if (walk_.preempt) {
    postponed_inserts_.Insert(job);
  }
}

// Exactly: with the keys of now also where a job is within its stay.
void OrderedQueue::InsertPostponed(TimePoint now, bool exactly) {
  for (const JobId job : postponed_inserts_.TakeAll()) {
    Insert(job, now, exactly);
  }
  if (exactly) {
    for (const JobId job : inexact_.TakeAll()) {
      Insert(job, now);
    }
  }
}

// Whether the index has the job where it belongs. Where keys move all the time, the former key of a
// job that stays does as well, unless `exactly`: it is no victim of an open job whatever its key,
// and is looked at anew at each decision.
bool OrderedQueue::IsInPlace(const JobView& view, const OrderIndex::Rank& rank, TimePoint now,
                             bool exactly) {
  if (view.grant == nullptr) {
    return !index_.Runs(view.id) && index_.RankAt(view.id, now) == rank;
  }
  if ((traits_.moves & (kAlways | kWhileServed)) != kAlways || !evictions_ ||
      !index_.Runs(view.id) || evictions_->grant(view.id) != *view.grant) {
    return false;
  }
  const OrderIndex::Rank& stored = index_.StoredRank(view.id);
  if (stored == rank) {
    return true;
  }
  const bool stays =
      stored.band == OrderIndex::Band::kStays && rank.band == OrderIndex::Band::kStays;
  if (!stays || exactly) {
    return false;
  }
  inexact_.Insert(view.id);
  return true;
}

void OrderedQueue::Insert(JobId job, TimePoint now, bool exactly) {
  postponed_inserts_.Erase(job);
  if (plain_) {
    Stale(job);
    return;
  }
  const JobView view = jobs_.at(job);
  const Standing standing = ordering_.StandingOf(view, now, memory_.get());
  const OrderIndex::Rank rank = RankOf(view, standing);
  if (index_.Holds(job)) {
    if (IsInPlace(view, rank, now, exactly)) {
      return;
    }
    Withdraw(job);
  }
  if (view.grant == nullptr) {
    index_.PushWaiting(job, packing_.ClassOf(*view.spec, view.spec->gpus), rank);
  } else if (walk_.preempt) {
    const bool slides = (traits_.moves & kWhileServed) != 0;
    index_.PushRunning(job, *view.grant, rank, slides ? standing.slope : 0, now);
    if (evictions_) {
      evictions_->Put(job, *view.grant, index_.StoredRank(job));
    }
  }
}

void OrderedQueue::Reschedule(const JobView& view, TimePoint now) {
  if ((traits_.moves & kAtKnownTimes) != 0) {
    moves_.Set(view.id, ordering_.StandingOf(view, now, memory_.get()).moves_at);
  }
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

void OrderedQueue::Note(JobId job, JobChange change, TimePoint now) {
  if (change == JobChange::kLeft) {
    stays_.Cancel(job);
    moves_.Cancel(job);
    postponed_inserts_.Erase(job);
    postponed_moves_.erase(job);
    if (plain_) {
      Delist(job);
    } else if (index_.Holds(job)) {
      Withdraw(job);
    }
    return;
  }
  const JobView view = jobs_.at(job);
  if (change == JobChange::kAdmitted) {
    ordering_.Notify(JobEvent::kArrived, view, now, memory_.get());
  }
  if (change == JobChange::kAdmitted || change == JobChange::kReturned) {
    if (plain_) {
      Enlist(job);
    }
    NoteStay(view, now);
  } else if (change == JobChange::kLostGpus) {
    stays_.Cancel(job);
    if ((traits_.moves & kOnGrant) != 0) {
      ordering_.Notify(JobEvent::kSettled, view, now, memory_.get());
    }
  } else if (index_.Holds(job)) {
    Withdraw(job);
  }
  Insert(job, now);
  Reschedule(view, now);
}

void OrderedQueue::TellDue(TimePoint now) {
  due_.clear();
  std::vector<std::pair<TimePoint, JobId>> due;
  while (moves_.IsDue(now)) {
    due.push_back(*moves_.in_order().begin());
    moves_.Cancel(due.back().second);
  }
  if (!schedules_late_) {
    std::sort(due.begin(), due.end(), [this](const auto& a, const auto& b) {
      if (!traits_.sets_wake && a.first != b.first) {
        return a.first < b.first;
      }
      const JobView x = jobs_.at(a.second);
      const JobView y = jobs_.at(b.second);
      if (walk_.largest_first && x.spec->gpus != y.spec->gpus) {
        return x.spec->gpus > y.spec->gpus;
      }
      return x.arrival < y.arrival;
    });
  }
  for (const auto& [at, job] : due) {
    due_.push_back(job);
  }
  if (schedules_late_) {
    for (const JobId job : due_) {
      InsertLater(job, now);
    }
    return;
  }
  for (const JobId job : due_) {
    ordering_.Notify(JobEvent::kDue, jobs_.at(job), now, memory_.get());
    if (plain_) {  // behind its equals
      Delist(job);
      Enlist(job);
    }
    InsertLater(job, now);
  }
}

// Moves the keys that have come due by now, before keys are compared.
void OrderedQueue::BringUpToDate(const Snapshot& snapshot) {
  TellDue(snapshot.now);
  while (stays_.IsDue(snapshot.now)) {  // these jobs take their places by their keys
    const JobId job = stays_.in_order().begin()->second;
    stays_.Cancel(job);
    InsertLater(job, snapshot.now);
  }
  ordering_.BeginDecision(snapshot, memory_.get());
}

Selection OrderedQueue::Select(const Snapshot& snapshot, Packing& packing) {
  BringUpToDate(snapshot);
  evicted_.clear();
  reinsert_.clear();
  if (plain_) {
    return SelectPlain(snapshot, packing);
  }
  if ((traits_.moves & kAlways) != 0) {
    for (const JobId job : snapshot.jobs->live()) {
      InsertLater(job, snapshot.now);
    }
  }
  return SelectIncremental(snapshot, packing);
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
  if (!walk_.preempt) {  // running jobs run on
    PutRunningFirst(demands, jobs_);
  }
  packing.Clear();
  return WalkDemands(demands, walk_, jobs_, packing);
}

std::optional<JobId> OrderedQueue::BestOpen(std::span<const DemandClass> closed) const {
  std::optional<JobId> best;
  const OrderIndex::Rank* best_rank = nullptr;
  for (const auto& [of, heap] : index_.waiting()) {
    if (heap.empty() || std::find(closed.begin(), closed.end(), of) != closed.end()) {
      continue;
    }
    const JobId job = JobAt(heap.top());
    const OrderIndex::Rank& rank = index_.StoredRank(job);  // waits: time does not move its key
    if (best_rank == nullptr || rank < *best_rank) {
      best = job;
      best_rank = &rank;
    }
  }
  return best;
}

Selection OrderedQueue::SelectIncremental(const Snapshot& snapshot, Packing& packing) {
  Selection selection;
  std::vector<DemandClass> closed;  // classes that failed: free GPUs only become fewer
  while (const std::optional<JobId> job = BestOpen(closed)) {
    const JobSpec& spec = jobs_.spec(*job);
    const DemandClass of = packing_.ClassOf(spec, spec.gpus);
    if (std::optional<Grant> grant = Place(*job, snapshot, packing)) {
      index_.Erase(*job);
      reinsert_.push_back(*job);
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

// In a strict order no job of another demand class has been tried either.
void OrderedQueue::BlockBehind(const DemandClass& head, Selection& selection) const {
  selection.blocked.reserve(selection.blocked.size() + index_.waiting().size());
  for (const auto& [of, heap] : index_.waiting()) {
    if (!heap.empty() && !(of == head)) {
      selection.blocked.push_back(
          {JobAt(heap.top()), of.gpus, model::WaitReason::kBehindHead, of.kind});
    }
  }
}

std::optional<Grant> OrderedQueue::Place(JobId job, const Snapshot& snapshot, Packing& packing) {
  const auto [spec, held, started] = jobs_.brief(job);
  const bool holds = held != nullptr && held->gpus > 0;
  const Grant* former = holds && walk_.misfit != Misfit::kEvictTail ? held : nullptr;
  std::optional<Grant> grant = packing.TryAdd(*spec, {.gpus = spec->gpus}, former);
  if (!grant && (walk_.preempt || walk_.misfit == Misfit::kEvictTail)) {
    const JobView view = jobs_.at(job);
    InsertPostponed(snapshot.now, index_.StoredRank(job).band == OrderIndex::Band::kFirst);
    Displacement::Outcome outcome =
        walk_.misfit == Misfit::kEvictTail
            ? displacement_.EvictTail(view, snapshot.now, packing)
            : displacement_.MakeRoom(view, snapshot.now, evictions_ ? &*evictions_ : nullptr,
                                     packing);
    grant = std::move(outcome.grant);
    for (const JobId displaced : outcome.displaced) {
      LoseTurn(displaced, snapshot.now);
    }
  }
  if (grant && evictions_) {
    evictions_->Touch(*grant);
  }
  return grant;
}

// The victim, out of the packing, waits in its own place of the order and is tried again there.
void OrderedQueue::LoseTurn(JobId victim, TimePoint now) {
  const OrderIndex::Rank rank = index_.RankAt(victim, now);
  Withdraw(victim);
  index_.PushWaiting(victim, packing_.ClassOf(jobs_.spec(victim), jobs_.grant(victim).gpus), rank);
  evicted_.push_back(victim);
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
    ordering_.Notify(JobEvent::kSettled, *view, now, memory_.get());
    if (jobs_.grant(view->id).gpus > 0 ||
        (index_.Holds(view->id) && index_.RankAt(view->id, now) != RankOf(*view, now))) {
      reinsert_.push_back(view->id);
    }
    Reschedule(*view, now);
  }
}

// Brings the keys of `changed` and of the jobs that were due up to date with the new grants.
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
    postponed_moves_.insert(touched.begin(), touched.end());
  } else if ((moves & kOnGrant) != 0) {
    TellSettled(touched, now);
  } else {
    for (const JobId job : touched) {
      Reschedule(jobs_.at(job), now);
    }
  }
}

std::optional<TimePoint> OrderedQueue::Adopted(const Snapshot& snapshot,
                                               std::span<const JobId> changed) {
  const TimePoint now = snapshot.now;
  FollowUp(changed, now);
  if (walk_.preempt || plain_) {  // else no running job is compared with others
    for (const JobId job : changed) {
      NoteStay(jobs_.at(job), now);
    }
  }
  if (plain_) {
    for (const JobId job : changed) {
      Stale(job);
    }
  } else {
    reinsert_.insert(reinsert_.end(), changed.begin(), changed.end());
    std::sort(reinsert_.begin(), reinsert_.end());
    reinsert_.erase(std::unique(reinsert_.begin(), reinsert_.end()), reinsert_.end());
    for (const JobId job : reinsert_) {
      InsertLater(job, now);
    }
  }
  if (snapshot.jobs_waiting > 0) {
    for (const JobId job : postponed_moves_) {
      Reschedule(jobs_.at(job), now);
    }
    postponed_moves_.clear();
    if ((traits_.moves & kAlways) == 0) {  // otherwise all are inserted at the next decision
      InsertPostponed(now);
    }
  }
  wake_at_ = NextWake(snapshot);
  return wake_at_;
}

void OrderedQueue::Serialize(StateStream& state) {
  if (memory_) {
    memory_->Serialize(state);
  }
  index_.Serialize(state, jobs_);
  std::map<JobId, TimePoint> moves;
  for (const auto& [at, job] : moves_.in_order()) {
    moves.emplace(job, at);
  }
  JobTimes::InOrder stays = stays_.in_order();
  std::vector<bool> stale;  // of the jobs in the list
  stale.reserve(list_.size());
  for (const Ranked& ranked : list_) {
    stale.push_back(stale_[Index(ranked.job)]);
  }
  state(moves, list_, stale, wake_at_, stays, postponed_inserts_, postponed_moves_);
  if (state.reading() && stale.size() == list_.size()) {
    for (const auto& [job, at] : moves) {
      moves_.Set(job, at);
    }
    for (const auto& [at, job] : stays) {
      stays_.Set(job, at);
    }
    Resume(stale);
  }
}

// The rest follows from what has been read.
void OrderedQueue::Resume(const std::vector<bool>& stale) {
  for (std::size_t i = 0; i < list_.size(); ++i) {
    const std::size_t job = Index(list_[i].job);
    stale_.resize(std::max(stale_.size(), job + 1));
    stale_[job] = stale[i];
    some_stale_ = some_stale_ || stale[i];
  }
  if (evictions_) {
    for (const JobId job : jobs_.live()) {
      if (index_.Runs(job)) {
        evictions_->Put(job, jobs_.grant(job), index_.StoredRank(job));
      }
    }
  }
}

std::optional<TimePoint> OrderedQueue::NextWake(const Snapshot& snapshot) const {
  std::optional<TimePoint> next;
  if (traits_.sets_wake) {
    next = ordering_.NextWake(snapshot, memory_.get());
  } else if (!moves_.empty() && snapshot.jobs_waiting > 0) {  // else the order decides nothing
    next = moves_.in_order().begin()->first;
  }
  return base::Earlier(next, StayWake(snapshot));
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
  const auto usable =
      std::find_if(stays_.in_order().begin(), stays_.in_order().end(), [&](const auto& stay) {
        return (traits_.moves & kAlways) != 0 ||
               *best < RankAfterStay(stay.second, stay.first, snapshot.now);
      });
  return usable == stays_.in_order().end() ? std::nullopt : std::optional(usable->first);
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

}  // namespace trainyard::scheduler
