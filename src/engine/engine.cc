// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/earlier.h"
#include "base/rounding.h"
#include "base/try.h"
#include "engine/no_requeue.h"
#include "model/conditions.h"
#include "model/slices.h"

namespace trainyard::engine {

Engine::Engine(EngineSetup setup)
    : observer_(setup.observer),
      selector_(setup.configuration->selector),
      nodes_(setup.configuration->cluster, jobs_),
      parts_(std::make_unique<Parts>(setup.configuration, std::move(setup.measured), jobs_,
                                     nodes_.all())),
      numbers_(*setup.numbers),
      configurations_(setup.configurations),
      eligibility_(jobs_, numbers_) {
  nodes_.LeaveNoRequeueAlone(NoRequeue::IsLeftAlone(configuration()));
}

// ---------------------------------------------------------------------------------------- facts

std::optional<TimePoint> Engine::next_wakeup() const {
  return paused_
             ? eligibility_.next(now_)
             : base::Earlier(parts_->instants.Next(jobs_, parts_->ends), eligibility_.next(now_));
}

Result<std::span<const model::Action>> Engine::Step(const model::Batch& batch) {
  actions_.clear();
  now_ = batch.now;
  parts_->instants.BeginStep();
  parts_->views.SetNow(now_);
  parts_->ledger.SetEarly(batch.now == first_end_ ? first_end_early_ : 0);
  parts_->charges.data().AdvanceTo(batch.now);
  for (const model::Event& event : batch.events) {
    if (event.kind() == model::EventKind::kConfigured) {
      ++events_;
      ASSIGN_OR_RETURN(
          SharedConfiguration next,
          ReadConfiguration(event.As<model::fact::Configured>().note, configuration()));
      Reconfigure(std::move(next));
      parts_->instants.AddFact(event.at);
    } else if (const auto* const switched = std::get_if<model::fact::Switched>(&event.fact)) {
      ++events_;
      if (std::exchange(paused_, switched->paused) && !paused_) {
        parts_->instants.AddFact(event.at);  // decides what has become due meanwhile
      }
    } else if (event.kind() == model::EventKind::kUpgraded) {
      ++events_;
      Reconfigure(shared_configuration());
    } else {
      Take(event);
    }
  }
  while (eligibility_.IsDue(now_)) {
    TakeEligible();
  }
  const std::optional<TimePoint> instant = parts_->instants.Next(jobs_, parts_->ends);
  const bool is_due = !paused_ && instant && *instant <= batch.now;
  if (batch.decided) {
    RETURN_IF_ERROR(Follow(batch, is_due));
  } else if (is_due) {
    RETURN_IF_ERROR(Decide(batch.now));
    NoRequeue(*this).LeaveStartedAlone();
    TellDecision();
  } else if (!paused_ && parts_->instants.cpu_jobs_are_due() && jobs_.any_cpu_jobs()) {
    // What has happened is no cause for the policy to decide, or not yet.
    RETURN_IF_ERROR(Adopt(parts_->scheduler.DecideCpuJobs(now_), now_));
    NoRequeue(*this).LeaveStartedAlone();
    TellDecision();
  }
  if (observer_ != nullptr) {
    observer_->OnStep(batch.now, actions_);
  }
  return std::span<const model::Action>(actions_);
}

// ----------------------------------------------------------------------------------------- ends

std::optional<TimePoint> Engine::next_end() const {
  if (parts_->ends.empty() || rules().end.source == model::EndRule::Source::kFound) {
    return std::nullopt;
  }
  const JobId first = parts_->ends.FirstToJoin(records());
  return parts_->instants.ReleaseOf(jobs_[first].forecast.logged, jobs_, parts_->ends);
}

std::vector<model::Event> Engine::TakeEnds(TimePoint now) {
  std::vector<model::Event> events;
  if (const std::optional<TimePoint> due = next_end(); !due || *due > now) {
    return events;  // an end that waits for its instant is not told with the facts before it
  }
  const model::Forecast first = jobs_.At(parts_->ends.FirstToJoin(records())).forecast;
  first_end_ = first.logged;
  first_end_early_ = first.done == first.logged ? first.early : 0;
  const TimePoint until = std::max(now, parts_->ends.JoinedUntil(first.logged));
  while (!parts_->ends.empty() && jobs_[parts_->ends.first()].forecast.logged <= until) {
    const JobId id = parts_->ends.first();
    model::JobRecord& job = jobs_[id];
    parts_->ends.Cancel(records(), id);
    if (parts_->ends.Joins(job.forecast.logged, now)) {
      job.forecast = {.done = now, .logged = now};  // joins the first one
    }
    if (!job.grant.holds() && !rules().published.ends_without_gpus) {
      parts_->instants.AddFact(
          job.forecast.logged);  // planned, but the job has come to hold nothing
      continue;
    }
    events.push_back({.at = job.forecast.done, .fact = model::fact::Ended{.job = id}});
  }
  return events;
}

void Engine::Predict(JobId id, TimePoint now, bool charge_counts) {
  model::JobRecord& job = jobs_[id];
  const TimePoint before = job.forecast.logged;
  parts_->ledger.Predict(job, now, charge_counts);
  if (job.forecast.logged == kEndOfTime) {
    parts_->ends.Cancel(records(), id);
  } else {
    parts_->ends.Schedule(records(), id, before);
  }
}

// The ends of all jobs that may have moved by a decision.
void Engine::ScheduleEnds(TimePoint now) {
  if (rules().end.source == model::EndRule::Source::kPlanned) {
    for (const PlannedEnd& end : parts_->scheduler.planned_ends()) {
      model::JobRecord& job = jobs_[end.job];
      const TimePoint before = job.forecast.logged;
      job.forecast.logged = end.registered + job.progress.debt;
      job.forecast.done = end.done.value_or(job.forecast.logged);
      parts_->ends.Schedule(records(), end.job, before);
    }
    return;
  }
  for (const JobId job :
       rules().published.every_instant ? jobs_.running() : parts_->grants.changed()) {
    if (jobs_.At(job).grant.holds()) {
      Predict(job, now, parts_->charges.restarts_all());
    }
  }
}

// ------------------------------------------------------------------------------------ decisions

void Engine::TellDecision() const {
  if (observer_ != nullptr) {
    observer_->OnDecision(
        {.now = now_,
         .gpus_used = parts_->grants.used_gpus(),
         .jobs_running = static_cast<std::int64_t>(jobs_.running().size() + jobs_.on_cpus().size()),
         .jobs_waiting = jobs_.waiting() + jobs_.cpu_waiting(),
         .gpus_up = nodes_.gpus() + nodes_.GpusFinishing(false)});
  }
}

Status Engine::Decide(TimePoint now) {
  if (rules().published.every_instant) {
    BringUpToDate(now);
  }
  if (selector_ != nullptr) {
    ChooseBundle(now);
  }
  const auto judge = [this, now](std::span<const Verdict> verdicts) {
    ApplyVerdicts(verdicts, now);
  };
  // `resized_` may hold duplicates and ended jobs.
  std::sort(resized_.begin(), resized_.end());
  resized_.erase(std::unique(resized_.begin(), resized_.end()), resized_.end());
  std::erase_if(resized_, [this](JobId job) { return !jobs_.IsLive(job); });
  ASSIGN_OR_RETURN(const std::vector<Verdict> verdicts, parts_->scheduler.Admit(MakeSnapshot(now)));
  judge(verdicts);
  ASSIGN_OR_RETURN(scheduler::Selection selection,
                   parts_->scheduler.Decide(MakeSnapshot(now), judge));
  RETURN_IF_ERROR(Adopt(std::move(selection), now));
  parts_->instants.WakeAt(parts_->scheduler.Adopted(MakeSnapshot(now), parts_->grants.changed()));
  parts_->instants.Decided(now);
  resized_.clear();
  parts_->charges.CountDecisions(++decisions_);
  bounded_decisions_ += parts_->scheduler.bounded() ? 1 : 0;
  return {};
}

// Accrues the progress of all running jobs, and takes the ends that have come without being told.
void Engine::BringUpToDate(TimePoint now) {
  std::vector<JobId> finished;
  for (const JobId id : jobs_.running()) {
    model::JobRecord& job = jobs_[id];
    if (rules().end.source == model::EndRule::Source::kFound && job.forecast.done <= now) {
      finished.push_back(id);
      continue;
    }
    const TimePoint since = job.progress.as_of;
    const double work_before = job.progress.work_left;
    parts_->ledger.Accrue(job, now);
    parts_->ledger.CancelDebt(job);
    if (rules().end.source == model::EndRule::Source::kPlanned && job.progress.work_left <= 0 &&
        now > since) {
      job.forecast.logged = since + base::CeilToSecond(work_before / job.progress.rate);
      finished.push_back(id);
    }
  }
  if (rules().debt.charge == model::Debt::Charge::kEveryArrival) {
    for (const JobId id : jobs_.live()) {
      if (model::JobRecord& job = jobs_[id]; job.grant.gpus == 0 && job.started_late) {
        parts_->ledger.CancelDebt(job);
      }
    }
  }
  std::sort(finished.begin(), finished.end());
  for (const JobId job : finished) {  // sooner than planned, or since the last decision
    TakeEnd(job, jobs_[job].forecast.done);
  }
}

// Without finishing jobs, and what they hold.
Snapshot Engine::MakeSnapshot(TimePoint now) const {
  std::int64_t asked_by_finishing = 0;
  for (const JobId job : jobs_.finishing()) {
    asked_by_finishing += jobs_[job].spec->gpus;
  }
  return {.now = now,
          .cluster = &cluster(),
          .gpus_up = nodes_.gpus() - nodes_.GpusFinishing(true),
          .nodes_up = &nodes_.all(),
          .node_changes = nodes_.changes(),
          .jobs_waiting = jobs_.waiting(),
          .gpus_asked = jobs_.gpus_asked() - asked_by_finishing,
          .jobs = &parts_->views,
          .resized = resized_,
          .unjudged = jobs_.unjudged(),
          .rates = &parts_->rates,
          .costs = &parts_->charges};
}

void Engine::ApplyVerdicts(std::span<const Verdict> verdicts, TimePoint now) {
  for (const Verdict& verdict : verdicts) {
    switch (verdict.judgement) {
      case Judgement::kLater:
        break;
      case Judgement::kReject:
        parts_->ledger.Accrue(jobs_[verdict.job], now);
        jobs_.Leave(verdict.job, model::JobPhase::kRejected);
        Act(model::ActionKind::kReject, verdict.job).reason = verdict.reason;
        eligibility_.Ended(verdict.job, false);
        break;
      case Judgement::kAdmit:
        jobs_.Admit(verdict.job, now);
        (void)Act(model::ActionKind::kAdmit, verdict.job);
        parts_->scheduler.Note(verdict.job, scheduler::JobChange::kAdmitted, now);
        break;
    }
  }
  if (!verdicts.empty()) {
    jobs_.RemoveJudged();
  }
}

// Makes the selection true: the difference between it and the present state is launches,
// preemptions, resizes and migrations; what these cost, and the ends to come, follow.
Status Engine::Adopt(scheduler::Selection selection, TimePoint now) {
  parts_->grants.ClearChanged();
  for (const JobId job : selection.dropped) {
    ++jobs_[job].preemptions;
    Drop(job, now);
    if (jobs_.cpu_finishing().contains(job)) {  // others are left alone
      jobs_.ReturnToPolicy(job);
    }
  }
  std::vector<scheduler::Placed*> differing;
  differing.reserve(selection.placed.size());
  for (scheduler::Placed& placed : selection.placed) {
    if (!placed.grant.holds()) {
      jobs_.Start(placed.job, now);
      continue;
    }
    if (placed.restart || !(jobs_.At(placed.job).grant == placed.grant)) {
      parts_->grants.Vacate(placed.job);
      differing.push_back(&placed);
    }
  }
  for (scheduler::Placed* placed : differing) {
    RETURN_IF_ERROR(parts_->CheckGrant(jobs_, placed->job, placed->grant));
    parts_->grants.Occupy(placed->job, placed->grant);
    if (parts_->grants.used_gpus() > nodes_.gpus() + nodes_.GpusFinishing(false)) {
      return parts_->scheduler.check().Broken(placed->job,
                                              "more GPUs are granted than the cluster has");
    }
    const model::ActionKind kind = parts_->grants.Give(*placed, now);
    if (kind != model::ActionKind::kTune) {
      jobs_[placed->job].stay =
          parts_->scheduler.StayOf(placed->job, now, rules().preemption.min_runtime);
    }
    Act(kind, placed->job).grant = std::move(placed->grant);
  }
  if (parts_->scheduler.traits().may.share) {
    parts_->grants.SetRatesOfNeighbours(now);
  }
  parts_->charges.AtDecision(jobs_, parts_->instants.submits_to_come());
  AddRatesToActions();
  ScheduleEnds(now);
  for (std::size_t i = 0; eligibility_.has_limits() && i < parts_->grants.changed().size(); ++i) {
    eligibility_.WatchLimit(parts_->grants.changed()[i]);
  }
  for (std::size_t i = 0; eligibility_.awaits_starts() && i < parts_->grants.changed().size();
       ++i) {
    eligibility_.Started(parts_->grants.changed()[i]);
  }
  return {};
}

// One more action for the world.
model::Action& Engine::Act(model::ActionKind kind, JobId job) {
  model::Action& action = actions_.emplace_back();
  action.kind = kind;
  action.job = job;
  return action;
}

// Adds to the actions how fast jobs run and what they owe, now that all costs and all neighbours
// are known.
void Engine::AddRatesToActions() {
  for (model::Action& action : actions_) {
    if (action.grant.holds()) {
      AddRate(jobs_.At(action.job), action);
    }
  }
  if (!parts_->scheduler.traits().may.share) {
    return;  // no other rate has changed
  }
  std::vector<JobId> named;
  for (const model::Action& action : actions_) {
    if (action.grant.holds()) {
      named.push_back(action.job);
    }
  }
  std::sort(named.begin(), named.end());
  for (const JobId job : parts_->grants.changed()) {
    if (jobs_.At(job).grant.holds() && !std::binary_search(named.begin(), named.end(), job)) {
      AddRate(jobs_.At(job), Act(model::ActionKind::kPace, job));
    }
  }
}

// The job loses its GPUs and waits again.
void Engine::Drop(JobId job, TimePoint now) {
  parts_->grants.Take(job, now);
  if (rules().end.source != model::EndRule::Source::kPlanned) {
    parts_->ends.Cancel(records(), job);
  }
  if (eligibility_.has_limits()) {
    eligibility_.WatchLimit(job);
  }
  (void)Act(model::ActionKind::kPreempt, job);
}

// ---------------------------------------------------------------------------------------- views

std::optional<int> Engine::DemandKindOf(JobId job) const {
  const JobSpec& spec = *jobs_[job].spec;
  if (spec.gpus == 0) {
    return std::nullopt;
  }
  const std::optional<scheduler::DemandClass> known = parts_->choices.KnownClassOf(spec, spec.gpus);
  return known ? std::optional(known->kind) : std::nullopt;
}

model::Progress Engine::ProgressOf(JobId job, TimePoint now) const {
  return parts_->ledger.ProgressOf(jobs_[job], now);
}

std::optional<TimePoint> Engine::first_forecast() const {
  return parts_->ends.empty() ? std::nullopt
                              : std::optional(jobs_[parts_->ends.first()].forecast.logged);
}

std::vector<JobId> Engine::OverdueBy(TimePoint now) const {
  std::vector<JobId> overdue;
  for (const std::uint32_t job : parts_->ends.members()) {
    if (jobs_[JobAt(job)].forecast.logged <= now) {
      overdue.push_back(JobAt(job));
    }
  }
  std::sort(overdue.begin(), overdue.end());
  return overdue;
}

void Engine::Settle(TimePoint now) {
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    model::JobRecord& job = jobs_[JobAt(i)];
    if (job.phase.live() || job.phase.get() == model::JobPhase::kArrived) {
      parts_->ledger.Accrue(job, std::max(now, job.progress.as_of));
    }
  }
  if (observer_ != nullptr) {
    observer_->OnStep(now, {});
  }
}

}  // namespace trainyard::engine
