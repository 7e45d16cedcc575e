// SPDX-License-Identifier: Apache-2.0
#include "scheduler/queue/incremental_queue.h"

#include <algorithm>
#include <utility>

namespace trainyard::scheduler {

IncrementalQueue::IncrementalQueue(const Ordering& ordering, const JobTable& jobs,
                                   const Packing& packing, const QueueRules& rules)
    : OrderedQueue(ordering, jobs, rules),
      jobs_(jobs),
      packing_(packing),
      displacement_(jobs, index_) {
  if (rules.walk.preempt && packing.names_gpus()) {
    evictions_.emplace(packing.cluster());
  }
}

void IncrementalQueue::Note(JobId job, JobChange change, TimePoint now) {
  standings_.Note(job, change, now);
  const bool left = change == JobChange::kLeft;
  if (left) {
    postponed_inserts_.Erase(job);
  }
  if ((left || change == JobChange::kRequested) && index_.Holds(job)) {
    Withdraw(job);
  }
  if (!left) {
    Insert(job, now);
  }
}

void IncrementalQueue::NoteFreed(const Grant& grant) {
  if (evictions_) {
    evictions_->Touch(grant);
  }
}

void IncrementalQueue::Withdraw(JobId job) {
  if (evictions_ && index_.Runs(job)) {
    evictions_->Remove(job);
  }
  inexact_.Erase(job);
  index_.Erase(job);
}

// Inserts a waiting job now, a running one before it is compared with others.
void IncrementalQueue::InsertLater(JobId job, TimePoint now) {
  if (jobs_.grant(job).gpus == 0) {
    Insert(job, now);
  } else if (standings_.walk().preempt) {
    postponed_inserts_.Insert(job);
  }
}

// Exactly: with the keys of now also where a job is within its stay.
void IncrementalQueue::InsertPostponed(TimePoint now, bool exactly) {
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
bool IncrementalQueue::IsInPlace(const JobView& view, const OrderIndex::Rank& rank, TimePoint now,
                                 bool exactly) {
  if (view.grant == nullptr) {
    return !index_.Runs(view.id) && index_.RankAt(view.id, now) == rank;
  }
  if (!standings_.Move(kAlways) || standings_.Move(kWhileServed) || !evictions_ ||
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

void IncrementalQueue::Insert(JobId job, TimePoint now, bool exactly) {
  postponed_inserts_.Erase(job);
  const JobView view = jobs_.at(job);
  const Standing standing = standings_.Of(view, now);
  const OrderIndex::Rank rank = standings_.RankOf(view, standing);
  if (index_.Holds(job)) {
    if (IsInPlace(view, rank, now, exactly)) {
      return;
    }
    Withdraw(job);
  }
  if (view.grant == nullptr) {
    index_.PushWaiting(job, packing_.ClassOf(*view.spec, view.spec->gpus), rank);
  } else if (standings_.walk().preempt) {
    const bool slides = standings_.Move(kWhileServed);
    index_.PushRunning(job, *view.grant, rank, slides ? standing.slope : 0, now);
    if (evictions_) {
      evictions_->Put(job, *view.grant, index_.StoredRank(job));
    }
  }
}

Selection IncrementalQueue::Select(const Snapshot& snapshot, Packing& packing) {
  const TimePoint now = snapshot.now;
  const auto insert = [this, now](JobId job) { InsertLater(job, now); };
  standings_.TellDue(now, insert);
  standings_.EndStays(now, insert);
  standings_.BeginDecision(snapshot);
  evicted_.clear();
  reinsert_.clear();
  if (standings_.Move(kAlways)) {
    for (const JobId job : snapshot.jobs->live()) {
      InsertLater(job, now);
    }
  }
  return PlaceWaiting(snapshot, packing);
}

std::optional<JobId> IncrementalQueue::BestOpen(std::span<const DemandClass> closed,
                                                model::NodeClassSet awaited) const {
  std::optional<JobId> best;
  const OrderIndex::Rank* best_rank = nullptr;
  for (const auto& [of, heap] : index_.waiting()) {
    if (heap.empty() || (awaited != 0 && (packing_.NodesFor(of) & ~awaited) == 0) ||
        std::find(closed.begin(), closed.end(), of) != closed.end()) {
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

Selection IncrementalQueue::PlaceWaiting(const Snapshot& snapshot, Packing& packing) {
  Selection selection;
  std::vector<DemandClass> closed;  // classes that failed: free GPUs only become fewer
  model::NodeClassSet awaited = 0;  // by those whom nobody may pass
  while (const std::optional<JobId> job = BestOpen(closed, awaited)) {
    const JobSpec& spec = jobs_.spec(*job);
    const DemandClass of = packing_.ClassOf(spec, spec.gpus);
    if (std::optional<Grant> grant = Place(*job, snapshot, awaited, packing)) {
      index_.Erase(*job);
      reinsert_.push_back(*job);
      selection.placed.push_back({*job, std::move(*grant)});
      continue;
    }
    const model::NodeClassSet nodes = packing.NodesFor(of);
    selection.blocked.push_back(
        {*job, of.gpus,
         (nodes & awaited) != 0 ? model::WaitReason::kBehindHead : packing.WhyNot(of), of.kind});
    closed.push_back(of);
    if (standings_.walk().misfit != Misfit::kSkip && packing.CanBeMet(of)) {
      awaited |= standings_.walk().misfit == Misfit::kStop ? nodes : ~model::NodeClassSet{0};
    }
  }
  BlockBehind(closed, awaited, selection);
  for (const JobId job : evicted_) {
    if (index_.Holds(job)) {  // not placed again
      selection.dropped.push_back(job);
    }
  }
  return selection;
}

// In a strict order: the classes that have not been tried, as those before them wait for all nodes
// that they may have.
void IncrementalQueue::BlockBehind(std::span<const DemandClass> tried, model::NodeClassSet awaited,
                                   Selection& selection) const {
  if (awaited == 0) {
    return;
  }
  selection.blocked.reserve(selection.blocked.size() + index_.waiting().size());
  for (const auto& [of, heap] : index_.waiting()) {
    if (!heap.empty() && std::find(tried.begin(), tried.end(), of) == tried.end()) {
      selection.blocked.push_back(
          {JobAt(heap.top()), of.gpus, model::WaitReason::kBehindHead, of.kind});
    }
  }
}

// `but`: see Packing::TryAdd; who leaves nodes to another does not displace others, either.
std::optional<Grant> IncrementalQueue::Place(JobId job, const Snapshot& snapshot,
                                             model::NodeClassSet but, Packing& packing) {
  const Walk& walk = standings_.walk();
  const auto [spec, held, started] = jobs_.brief(job);
  const bool holds = held != nullptr && held->gpus > 0;
  const Grant* former = holds && walk.misfit != Misfit::kEvictTail ? held : nullptr;
  std::optional<Grant> grant = packing.TryAdd(*spec, {.gpus = spec->gpus}, former, but);
  if (!grant && but == 0 && (walk.preempt || walk.misfit == Misfit::kEvictTail) &&
      packing.CanBeMet(packing.ClassOf(*spec, spec->gpus))) {
    const JobView view = jobs_.at(job);
    InsertPostponed(snapshot.now, index_.StoredRank(job).band == OrderIndex::Band::kFirst);
    Displacement::Outcome outcome =
        walk.misfit == Misfit::kEvictTail
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
void IncrementalQueue::LoseTurn(JobId victim, TimePoint now) {
  const OrderIndex::Rank rank = index_.RankAt(victim, now);
  Withdraw(victim);
  index_.PushWaiting(victim, packing_.ClassOf(jobs_.spec(victim), jobs_.grant(victim).gpus), rank);
  evicted_.push_back(victim);
}

std::optional<TimePoint> IncrementalQueue::Adopted(const Snapshot& snapshot,
                                                   std::span<const JobId> changed) {
  const TimePoint now = snapshot.now;
  standings_.FollowUp(changed, now, [this, now](const JobView& view) {
    if (jobs_.grant(view.id).gpus > 0 ||
        (index_.Holds(view.id) && index_.RankAt(view.id, now) != standings_.RankOf(view, now))) {
      reinsert_.push_back(view.id);
    }
  });
  if (standings_.walk().preempt) {  // else no running job is compared with others
    for (const JobId job : changed) {
      standings_.NoteStay(jobs_.at(job), now);
    }
  }
  reinsert_.insert(reinsert_.end(), changed.begin(), changed.end());
  std::sort(reinsert_.begin(), reinsert_.end());
  reinsert_.erase(std::unique(reinsert_.begin(), reinsert_.end()), reinsert_.end());
  for (const JobId job : reinsert_) {
    InsertLater(job, now);
  }
  // With kAlways all are inserted at the next decision.
  if (snapshot.jobs_waiting > 0 && !standings_.Move(kAlways)) {
    InsertPostponed(now);
  }
  return standings_.NextWake(snapshot, StayEnd(snapshot));
}

// When a stay ends whose job a waiting one would then displace, as far as keys tell.
std::optional<TimePoint> IncrementalQueue::StayEnd(const Snapshot& snapshot) const {
  const Standings& all = standings_;
  if (!all.StaysMatter(snapshot)) {
    return std::nullopt;
  }
  const std::optional<JobId> best = BestOpen({}, 0);
  if (!best) {
    return std::nullopt;
  }
  const OrderIndex::Rank limit = index_.RankAt(*best, snapshot.now);
  const bool keys_tell = !all.Move(kAlways) || !all.moves_with_time();
  return all.FirstStayEnd([&](JobId job, TimePoint end) {
    return !keys_tell || limit < RankAfterStay(job, end, snapshot.now);
  });
}

OrderIndex::Rank IncrementalQueue::RankAfterStay(JobId job, TimePoint end, TimePoint now) const {
  if (standings_.Move(kAlways)) {  // not in the index yet
    return standings_.RankAfterStay(job, end, now);
  }
  return OrderIndex::WithoutStay(index_.RankAt(job, end));
}

void IncrementalQueue::Serialize(StateStream& state) {
  std::vector<Ranked> no_list;
  std::vector<bool> none_stale;
  standings_.Serialize(state, index_, no_list, none_stale, postponed_inserts_);
  if (state.reading() && state.good() && evictions_) {
    for (const JobId job : jobs_.live()) {
      if (index_.Runs(job)) {
        evictions_->Put(job, jobs_.grant(job), index_.StoredRank(job));
      }
    }
  }
}

}  // namespace trainyard::scheduler
