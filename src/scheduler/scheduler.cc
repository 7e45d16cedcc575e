// SPDX-License-Identifier: Apache-2.0
#include "scheduler/scheduler.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/try.h"
#include "model/stay.h"
#include "scheduler/queue/incremental_queue.h"
#include "scheduler/queue/plain_list.h"
#include "scheduler/queue/sorted_list.h"

namespace trainyard::scheduler {
namespace {

// Policies that plan, or keep rounds, and not orders or lists by rank.
bool IgnoresStays(const May& may) {
  return may.ignore_stay || may.admit || may.resize || may.name_gpus || may.share;
}

}  // namespace

Scheduler::Scheduler(const SchedulerContext& context, const Bundle& bundle, bool counts_restarts)
    : context_(context),
      jobs_(context.jobs),
      counts_restarts_(counts_restarts),
      bundle_(bundle),
      check_(context.cluster, context.nodes_up, context.jobs, bundle_),
      placer_(context, bundle_, check_),
      cpu_jobs_(context) {
  Use(bundle);
}

void Scheduler::Use(const Bundle& bundle) {
  bundle_ = bundle;
  CHECK((bundle_.ordering == nullptr) != (bundle_.policy == nullptr));
  traits_ = bundle_.traits();
  admission_memory_ = bundle_.admission->NewMemory();
  grouping_memory_ = bundle_.grouping != nullptr ? bundle_.grouping->NewMemory() : nullptr;
  policy_memory_ = bundle_.policy != nullptr ? bundle_.policy->NewMemory() : nullptr;
  proposal_ = {};
  placer_.Reopen();
  OpenQueue();
}

void Scheduler::OpenQueue() {
  queue_.reset();
  list_ = nullptr;
  if (bundle_.ordering == nullptr) {
    return;
  }
  const Ordering& ordering = *bundle_.ordering;
  const JobTable& jobs = context_.views;
  const QueueRules rules{.walk = bundle_.ordering_walk(), .running_first = counts_restarts_};
  const bool places_anew =
      !rules.walk.keep_running && !rules.walk.count_first && bundle_.names_gpus();
  std::unique_ptr<OrderedList> list;
  if (bundle_.plain_walk) {
    list = std::make_unique<PlainList>(ordering, jobs, rules);
  } else if (placer_.packs_queue() || bundle_.grouping != nullptr || places_anew ||
             rules.walk.former_rank != Walk::FormerRank::kNo ||
             rules.walk.misfit == Misfit::kReserve) {
    list = std::make_unique<SortedList>(ordering, jobs, rules);
  } else {
    queue_ = std::make_unique<IncrementalQueue>(ordering, jobs, placer_.of_queue(), rules);
    return;
  }
  list_ = list.get();
  queue_ = std::move(list);
}

void Scheduler::Join(TimePoint now) {
  if (!queue_) {
    return;
  }
  for (const JobId job : jobs_.live()) {
    queue_->Note(job, JobChange::kAdmitted, now);
  }
  for (const std::set<JobId>* const left : {&jobs_.held(), &jobs_.finishing()}) {
    for (const JobId job : *left) {
      if (jobs_.IsCpuJob(job)) {
        continue;
      }
      queue_->Note(job, JobChange::kAdmitted, now);
      queue_->Note(job, JobChange::kLeft, now);
    }
  }
}

void Scheduler::Serialize(StateStream& state) {
  state(blocked_);
  for (Memory* const memory :
       {policy_memory_.get(), admission_memory_.get(), placer_.memory(), grouping_memory_.get()}) {
    if (memory != nullptr) {
      memory->Serialize(state);
    }
  }
  if (queue_ != nullptr) {
    queue_->Serialize(state);
  }
}

void Scheduler::Note(JobId job, JobChange change, TimePoint now) {
  if (jobs_.IsCpuJob(job)) {
    if (change == JobChange::kLeft) {
      with_one_gpu_.erase(job);
    }
  } else if (queue_ && !retired_) {
    queue_->Note(job, change, now);
  }
}

void Scheduler::Retire() {
  retired_ = true;
  blocked_.clear();
}

void Scheduler::SetUp(NodeId node, bool up) {
  if (!retired_) {
    placer_.SetUp(node, up);
  }
}

void Scheduler::Refill() {
  if (!retired_) {
    placer_.Refill();
  }
}

void Scheduler::EndGrant(JobId job) {
  if (retired_ || (jobs_.IsCpuJob(job) && !Placer::KeepsCpus(jobs_, job))) {
    return;
  }
  const Grant& grant = jobs_[job].grant;
  if (!jobs_.IsFinishing(job)) {
    return placer_.Remove(job);
  }
  placer_.EndFinishing(job);
  if (queue_) {
    queue_->NoteFreed(grant);
  }
}

Result<std::vector<Verdict>> Scheduler::Admit(const Snapshot& snapshot) {
  if (jobs_.unjudged().empty()) {
    return std::vector<Verdict>();
  }
  std::vector<Verdict> verdicts = bundle_.admission->Admit(snapshot, admission_memory_.get());
  RETURN_IF_ERROR(check_.AdmissionVerdicts(verdicts));
  return verdicts;
}

Result<Selection> Scheduler::Decide(const Snapshot& snapshot, const Judge& judge) {
  CHECK(!retired_);
  Result<Selection> selection = queue_ ? DecideByOrder(snapshot) : DecideByPolicy(snapshot, judge);
  if (queue_ && queue_->standings().job_without_key()) {
    return check_.Broken(*queue_->standings().job_without_key(),
                         "its key has a component that is not a number; expected numbers, "
                         "infinity among them");
  }
  if (!selection.ok()) {
    return selection;
  }
  blocked_ = std::move(selection.value().blocked);
  if (bundle_.tuning != nullptr) {
    placer_.Tune(selection.value(), snapshot);
  }
  selection.value().dropped = placer_.DroppedBy(selection.value());
  if (jobs_.any_cpu_jobs()) {
    cpu_jobs_.AddTo(selection.value(), bundle_, CpuJobsInOrder(snapshot.now));
  }
  return selection;
}

Selection Scheduler::DecideCpuJobs(TimePoint now) {
  Selection selection;
  cpu_jobs_.AddTo(selection, bundle_, CpuJobsInOrder(now));
  return selection;
}

// As if it asked for one GPU and held it, since no ordering expects a job that asks for none.
Key Scheduler::KeyOf(JobId cpu_job, TimePoint now) {
  const std::shared_ptr<const JobSpec>& spec = jobs_[cpu_job].spec;
  auto& [known, with_one] = with_one_gpu_[cpu_job];
  if (known != spec) {
    known = spec;
    with_one = *spec;
    with_one.gpus = 1;
  }
  JobView view = context_.views.at(cpu_job);
  view.spec = &with_one;
  const Grant one{.gpus = 1};
  view.grant = view.grant == nullptr ? nullptr : &one;
  Key key = queue_->standings().Of(view, now).key;
  for (double& component : key) {
    component = std::isnan(component) ? std::numeric_limits<double>::infinity() : component;
  }
  return key;
}

// By the keys of the ordering; of one that remembers jobs, which has not heard of these, and of a
// policy as they have arrived.
std::vector<JobId> Scheduler::CpuJobsInOrder(TimePoint now) {
  const bool has_keys = queue_ != nullptr && !retired_ && bundle_.ordering->NewMemory() == nullptr;
  std::vector<std::tuple<Key, std::uint64_t, JobId>> ranked;
  ranked.reserve(jobs_.cpu_jobs().size());
  for (const JobId job : jobs_.cpu_jobs()) {
    ranked.emplace_back(has_keys ? KeyOf(job, now) : Key{}, jobs_[job].arrival, job);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<JobId> in_order;
  in_order.reserve(ranked.size());
  for (const auto& [key, arrival, job] : ranked) {
    in_order.push_back(job);
  }
  return in_order;
}

std::optional<TimePoint> Scheduler::Adopted(const Snapshot& snapshot,
                                            std::span<const JobId> changed) {
  if (!queue_) {
    return proposal_.wake_at;
  }
  return queue_->Adopted(snapshot, jobs_.any_cpu_jobs() ? WithGpus(changed) : changed);
}

// Valid until it is called again.
std::span<const JobId> Scheduler::WithGpus(std::span<const JobId> jobs) {
  with_gpus_.clear();
  std::copy_if(jobs.begin(), jobs.end(), std::back_inserter(with_gpus_),
               [this](JobId job) { return !jobs_.IsCpuJob(job); });
  return with_gpus_;
}

Result<Selection> Scheduler::DecideByPolicy(const Snapshot& snapshot, const Judge& judge) {
  proposal_ = bundle_.policy->Decide(snapshot, policy_memory_.get());
  RETURN_IF_ERROR(check_.Verdicts(proposal_.verdicts));
  judge(proposal_.verdicts);
  RETURN_IF_ERROR(check_.Demands(proposal_.demands));
  RETURN_IF_ERROR(check_.Ends(proposal_.ends));
  PutStaysFirst(proposal_.demands, snapshot.now);
  return placer_.PlaceProposed(std::move(proposal_.demands), bundle_.walk.value_or(proposal_.walk));
}

Result<Selection> Scheduler::DecideByOrder(const Snapshot& snapshot) {
  if (bundle_.grouping != nullptr) {
    return DecideByGroups(snapshot);
  }
  if (placer_.packs_queue()) {
    return placer_.PlaceQueue(list_->InOrder(snapshot));
  }
  Selection selection = queue_->Select(snapshot, placer_.of_queue());
  return placer_.counts_first() ? placer_.PlaceCounted(std::move(selection))
                                : Result<Selection>(std::move(selection));
}

// All live jobs in their order, as gangs that the grouping makes of them.
Result<Selection> Scheduler::DecideByGroups(const Snapshot& snapshot) {
  std::vector<RankedJob> jobs;
  for (const Ranked& ranked : list_->InOrder(snapshot)) {
    const Grant& held = jobs_[ranked.job].grant;
    jobs.push_back({.id = ranked.job,
                    .spec = jobs_[ranked.job].spec.get(),
                    .grant = held.gpus > 0 ? &held : nullptr,
                    .rank = static_cast<double>(jobs.size())});
  }
  const Walk walk = bundle_.ordering_walk();
  std::vector<Demand> demands =
      bundle_.grouping->Group(snapshot, jobs, walk, grouping_memory_.get());
  RETURN_IF_ERROR(check_.Demands(demands));
  return placer_.PlaceProposed(std::move(demands), walk);
}

// Running jobs that may not be displaced yet come before all others, demanded or not. A policy that
// plans or keeps a round of its own counts the costs itself.
void Scheduler::PutStaysFirst(std::vector<Demand>& demands, TimePoint now) const {
  if (IgnoresStays(traits_.may)) {
    return;
  }
  std::vector<Demand> first;
  for (const JobId job : jobs_.running()) {
    if (jobs_[job].stay > Duration{0} && !jobs_.IsFinishing(job) &&
        model::StayLeft(jobs_[job], now) > Duration{0}) {
      first.push_back({.job = job, .gpus = jobs_[job].grant.gpus});
    }
  }
  if (first.empty()) {
    return;
  }
  std::sort(first.begin(), first.end(),
            [](const Demand& a, const Demand& b) { return a.job < b.job; });
  std::erase_if(demands, [&first](Demand& demand) {
    const auto stays = std::lower_bound(first.begin(), first.end(), demand.job,
                                        [](const Demand& a, JobId job) { return a.job < job; });
    if (stays == first.end() || stays->job != demand.job) {
      return false;
    }
    if (demand.gpus == stays->gpus) {
      *stays = std::move(demand);
    }
    return true;
  });
  first.insert(first.end(), std::make_move_iterator(demands.begin()),
               std::make_move_iterator(demands.end()));
  demands = std::move(first);
}

Duration Scheduler::StayOf(JobId job, TimePoint now, Duration least) const {
  if (!counts_restarts_ || jobs_.IsCpuJob(job)) {
    return Duration{0};
  }
  // What an ordering remembers of jobs, it has not heard of since the scheduler has retired.
  const bool knows = queue_ && !(retired_ && bundle_.ordering->NewMemory() != nullptr);
  const std::optional<Duration> own = knows ? queue_->standings().StayOf(job, now) : Duration{0};
  if (!own) {
    return least;
  }
  constexpr int kCostsPerStay = 10;  // at most 1/11 of the GPU time goes to restarts
  const model::JobRecord& record = jobs_[job];
  return std::max({least, *own, kCostsPerStay * (record.progress.debt + record.restart_cost)});
}

}  // namespace trainyard::scheduler
