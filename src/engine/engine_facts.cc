// SPDX-License-Identifier: Apache-2.0
// What the engine makes of each kind of fact.
#include <algorithm>
#include <memory>

#include "base/text.h"
#include "engine/engine.h"
#include "engine/no_requeue.h"
#include "model/conditions.h"
#include "model/job_fields.h"

namespace trainyard::engine {
namespace {

// The traits of a job that is to avoid the nodes.
std::shared_ptr<const JobTraits> Avoiding(const JobSpec& spec, const std::vector<NodeId>& nodes) {
  if (!spec.traits && nodes.empty()) {
    return nullptr;
  }
  JobTraits traits = model::PartOf<JobTraits>(spec);
  traits.avoided = nodes;
  return std::make_shared<const JobTraits>(std::move(traits));
}

}  // namespace

void Engine::Take(const model::Event& event) {
  if (!event.others().empty()) {
    return model::ForEachJob(event, [this](const model::Event& one) { Take(one); });
  }
  ++events_;
  switch (event.kind()) {
    case model::EventKind::kSubmitted:
    case model::EventKind::kArraySubmitted:
      return TakeSubmit(event);
    case model::EventKind::kEnded:
      if (jobs_[event.job()].forecast.logged > now_) {
        jobs_[event.job()].forecast = {};  // sooner than predicted
      }
      return TakeEnd(event.job(), event.at);
    case model::EventKind::kFailed:
      parts_->ledger.Accrue(jobs_[event.job()], std::max(now_, jobs_[event.job()].progress.as_of));
      jobs_[event.job()].done = event.at;
      jobs_[event.job()].logged = event.at;
      Leave(event.job(), model::JobPhase::kFailed);
      parts_->instants.AddFactOf(jobs_, event.job(), event.at);
      return;
    case model::EventKind::kGpusLost:
      if (jobs_[event.job()].phase.get() == model::JobPhase::kRunning) {
        ++jobs_[event.job()].preemptions;
        TakeGpus(event.job(), true);
        parts_->instants.AddFactOf(jobs_, event.job(), event.at);
      }
      return;
    case model::EventKind::kProgress:
    case model::EventKind::kOverrun:
      return TakeWork(event);
    case model::EventKind::kReported:
      // Told at the next decision; no cause for one, or jobs could keep the engine busy by talking.
      if (jobs_.Report(event.job(), event.As<model::fact::Reported>().metrics)) {
        Requeue(event.job());
      }
      return;
    case model::EventKind::kResized:
    case model::EventKind::kUpdated:
      return TakeResize(event);
    case model::EventKind::kNodeDown:
    case model::EventKind::kNodeUp:
    case model::EventKind::kNodeDrained:
    case model::EventKind::kNodeCordoned:
      return TakeNode(event);
    case model::EventKind::kNodeUndrained:
    case model::EventKind::kNoted:
    case model::EventKind::kConfigured:  // Step has taken these
    case model::EventKind::kSwitched:
    case model::EventKind::kUpgraded:
      return;
    case model::EventKind::kBarred:
    case model::EventKind::kHeld:
    case model::EventKind::kRequeued:
      return TakeHold(event);
    case model::EventKind::kDataKept:  // a correction of the books is no cause to decide
      return parts_->charges.data().Correct(event.node(), *event.As<model::fact::DataKept>().data);
    case model::EventKind::kMeasured:  // nor is this
      if (parts_->measured != nullptr &&
          parts_->measured->Add(*jobs_[event.job()].spec, event.As<model::fact::Measured>())) {
        CorrectJobs(std::string(jobs_[event.job()].spec->model));
      }
      return;
    case model::EventKind::kCancelled:
      return TakeCancel(event.job(), event.at);
    case model::EventKind::kNoMoreSubmits:
      parts_->instants.NoMoreSubmits();
      return;
  }
}

// The tasks of an array share one specification.
void Engine::TakeSubmit(const model::Event& event) {
  const std::shared_ptr<const JobSpec> stated = event.spec();
  const bool is_array = event.kind() == model::EventKind::kArraySubmitted;
  const bool deferred = Eligibility::HasTerms(*stated);
  const auto spec = parts_->measured == nullptr ? stated : parts_->measured->Corrected(stated);
  for (std::size_t i = 0, count = is_array ? model::CountOf(*stated) : 1; i < count; ++i) {
    const JobId id = JobAt(Index(event.job()) + i);
    model::JobRecord& job = jobs_.Submit(id, spec, deferred);
    parts_->ledger.Open(job, event.at);
    parts_->charges.Price(job);
    if (stated->traits && stated->traits->time_limit) {
      eligibility_.WatchLimit(id);
    }
    eligibility_.Arrived(id);
    if (deferred) {
      eligibility_.Submit(id);
    } else if (jobs_.IsCpuJob(id)) {
      AdmitCpuJob(id, event.at);
    } else {
      parts_->instants.AddSubmit(event.at);
    }
  }
}

// Nobody judges a job without GPUs.
void Engine::AdmitCpuJob(JobId job, TimePoint at) {
  jobs_.Admit(job, at);
  (void)Act(model::ActionKind::kAdmit, job);
  parts_->instants.AddFactOf(jobs_, job, at);
}

// Jobs that have become eligible arrive for the scheduler now; others have to end.
void Engine::TakeEligible() {
  const Eligibility::Changes changes = eligibility_.Take(now_);
  for (const JobId job : changes.over) {
    parts_->ledger.Accrue(jobs_[job], std::max(now_, jobs_[job].progress.as_of));
    jobs_[job].done = now_;
    jobs_[job].logged = now_;
    const Duration limit = *jobs_[job].spec->traits->time_limit;
    Leave(job, model::JobPhase::kFailed,
          std::string(model::kOverTimeLimit) + " of " + base::ShortDuration(Seconds(limit)));
    parts_->instants.AddFactOf(jobs_, job, now_);
  }
  for (const auto& [job, reason] : changes.impossible) {
    parts_->ledger.Accrue(jobs_[job], now_);
    jobs_.Leave(job, model::JobPhase::kRejected);
    Act(model::ActionKind::kReject, job).reason = reason;
    eligibility_.Ended(job, true);
  }
  for (const JobId job : changes.eligible) {
    jobs_.Present(job);
    if (jobs_.IsCpuJob(job)) {
      AdmitCpuJob(job, now_);
    } else {
      parts_->instants.AddSubmit(now_);
    }
  }
}

void Engine::TakeEnd(JobId id, TimePoint at) {
  model::JobRecord& job = jobs_[id];
  model::Progress& progress = job.progress;
  // A registered end may lie before or after the exact one.
  if (const TimePoint until = std::min(at, now_); progress.as_of < until) {
    parts_->ledger.Accrue(job, until);
  }
  progress.debt = now_ - progress.as_of;  // held without progress until now
  parts_->ledger.Accrue(job, now_);
  progress.work_left = 0;
  job.done = at;
  job.logged = job.forecast.logged == kEndOfTime ? at : job.forecast.logged;
  Leave(id, model::JobPhase::kCompleted);
  parts_->instants.AddFactOf(jobs_, id, job.logged);
}

// A live job ends; its GPUs, if it has any, are free again.
void Engine::Leave(JobId id, model::JobPhase phase, std::string reason) {
  if (jobs_.At(id).grant.holds()) {
    parts_->scheduler.EndGrant(id);
  }
  jobs_.Leave(id, phase);
  eligibility_.Ended(id, false);
  parts_->scheduler.Note(id, scheduler::JobChange::kLeft, now_);
  Act(model::ActionKind::kRelease, id).reason = std::move(reason);
  parts_->grants.Release(id);
  parts_->ends.Cancel(records(), id);
}

// A correction of the books is no cause to decide; a job that has overrun may have to give way to
// others that are shorter than what it counts as now. A planned end stays as it is.
void Engine::TakeWork(const model::Event& event) {
  const JobId id = event.job();
  model::JobRecord& job = jobs_[id];
  const bool plans = rules().end.source == model::EndRule::Source::kPlanned;
  const auto* const overrun = std::get_if<model::fact::Overrun>(&event.fact);
  if (!job.phase.live() || (overrun != nullptr && (plans || !job.grant.holds()))) {
    return;
  }
  parts_->ledger.Accrue(job, std::max(now_, job.progress.as_of));
  if (overrun != nullptr) {
    parts_->ledger.Extend(job, overrun->work_done);
    parts_->instants.AddFactOf(jobs_, id, event.at);
  } else {
    parts_->ledger.Correct(job, event.As<model::fact::Progress>().work_done);
  }
  if (job.grant.holds() && !plans) {
    Predict(id, job.progress.as_of, false);
  }
  Requeue(id);
}

// Something else has been measured of a model: what its jobs cost, how fast they are, and their
// stages, by which the jobs that share GPUs with them are slower or faster, too.
void Engine::CorrectJobs(const std::string& model) {
  std::vector<JobId> jobs(jobs_.live().begin(), jobs_.live().end());
  jobs.insert(jobs.end(), jobs_.unjudged().begin(), jobs_.unjudged().end());
  jobs.insert(jobs.end(), jobs_.deferred().begin(), jobs_.deferred().end());
  std::erase_if(jobs, [&](JobId job) { return jobs_.At(job).spec->model != model; });
  for (const JobId id : jobs) {
    model::JobRecord& job = jobs_[id];
    parts_->ledger.Accrue(job, std::max(now_, job.progress.as_of));
    parts_->Relearn(jobs_, id);
  }
  const std::vector<JobId> others = parts_->grants.SharersOf(jobs);
  jobs.insert(jobs.end(), others.begin(), others.end());
  for (const JobId id : jobs) {
    model::JobRecord& job = jobs_[id];
    if (job.grant.holds()) {
      parts_->ledger.Accrue(job, std::max(now_, job.progress.as_of));
      parts_->grants.Renew(id);
      if (rules().end.source != model::EndRule::Source::kPlanned) {
        Predict(id, job.progress.as_of, false);
      }
      AddRate(job, Act(model::ActionKind::kPace, id));
    }
    if (job.phase.live()) {
      Requeue(id);
    }
  }
}

// Another number of GPUs, or other terms.
void Engine::TakeResize(const model::Event& event) {
  model::JobRecord& job = jobs_[event.job()];
  const bool resized = event.kind() == model::EventKind::kResized;
  const auto spec = std::make_shared<JobSpec>(resized ? *job.spec : *event.spec());
  if (resized) {
    spec->gpus = event.As<model::fact::Resized>().gpus;
  } else {
    spec->traits = Avoiding(*spec, model::PartOf<JobTraits>(*job.spec).avoided);
  }
  if (resized && job.phase.get() == model::JobPhase::kRunning) {
    TakeGpus(event.job(), false);
    ++job.resizes;
    if (job.phase.get() >= model::JobPhase::kCompleted) {
      return;  // it may not wait again
    }
  }
  const bool moved = spec->queue != job.spec->queue && job.phase.get() == model::JobPhase::kRunning;
  // As submissions are: what has been measured goes before what is stated.
  jobs_.Respecify(event.job(), resized || parts_->measured == nullptr
                                   ? spec
                                   : parts_->measured->Corrected(spec));
  parts_->ledger.Learn(job);
  parts_->charges.Price(job);
  if (moved && !parts_->choices.classes().InPartition(*job.spec, job.grant.slices)) {
    TakeGpus(event.job(), false);
    if (job.phase.get() >= model::JobPhase::kCompleted) {
      return;
    }
  }
  if (!resized) {
    eligibility_.Respecified(event.job());
  }
  if (job.phase.live() && !jobs_.held().contains(event.job())) {
    if (resized) {
      resized_.push_back(event.job());
    }
    Requeue(event.job());
  }
  parts_->instants.AddFactOf(jobs_, event.job(), event.at);
}

// The job's place in the order may be another one now.
void Engine::Requeue(JobId job) {
  if (!jobs_.held().contains(job) && !jobs_.IsFinishing(job)) {
    parts_->scheduler.Note(job, scheduler::JobChange::kRequested, now_);
  }
}

// A live job is held back if a fact or its user says so. A running one that is requeued has notice,
// as after a drain, and loses no work.
void Engine::TakeHold(const model::Event& event) {
  const JobId id = event.job();
  const auto* const barred = std::get_if<model::fact::Barred>(&event.fact);
  const auto* const user_held = std::get_if<model::fact::Held>(&event.fact);
  const auto* const requeued = std::get_if<model::fact::Requeued>(&event.fact);
  if (barred != nullptr ? !jobs_.IsLive(id)
                        : jobs_[id].phase.get() >= model::JobPhase::kCompleted) {
    return;
  }
  parts_->instants.AddFactOf(jobs_, id, event.at);
  const bool runs = jobs_[id].phase.get() == model::JobPhase::kRunning;
  if (barred != nullptr) {
    const auto spec = std::make_shared<JobSpec>(*jobs_[id].spec);
    spec->traits = Avoiding(*spec, barred->nodes);
    jobs_.Respecify(id, spec);
    eligibility_.Bar(id, barred->held);
  } else if (user_held != nullptr) {
    eligibility_.Hold(id, user_held->held);
  } else if (requeued->held) {
    eligibility_.Hold(id, true);
  }
  const bool held = eligibility_.IsHeldBack(id);
  if (runs && (held || requeued != nullptr)) {
    ++jobs_[id].preemptions;
    TakeGpus(id, false);
    if (jobs_.At(id).phase.get() >= model::JobPhase::kCompleted) {
      return;  // it may not wait again
    }
  }
  if (!jobs_.IsLive(id)) {
    if (held && !jobs_.deferred().contains(id)) {
      jobs_.Defer(id);
      eligibility_.Defer(id);
    }
  } else if (held == jobs_.held().contains(id)) {
    Requeue(id);
  } else if (held) {
    jobs_.Hold(id);
    parts_->scheduler.Note(id, scheduler::JobChange::kLeft, now_);
  } else {
    jobs_.Release(id);
    parts_->scheduler.Note(id, scheduler::JobChange::kReturned, now_);
  }
}

void Engine::TakeGpus(JobId job, bool loses_work) {
  parts_->ledger.Accrue(jobs_[job], now_);
  if (loses_work) {
    parts_->ledger.RollBack(jobs_[job], cluster().checkpoint_interval);
  }
  if (NoRequeue(*this).End(job)) {
    return;
  }
  parts_->scheduler.EndGrant(job);
  Drop(job, now_);
  const bool was_finishing = jobs_.IsFinishing(job);
  if (was_finishing) {
    jobs_.ReturnToPolicy(job);
  }
  parts_->scheduler.Note(
      job, was_finishing ? scheduler::JobChange::kReturned : scheduler::JobChange::kLostGpus, now_);
}

void Engine::TakeCancel(JobId id, TimePoint at) {
  model::JobRecord& job = jobs_[id];
  if (job.phase.get() == model::JobPhase::kRunning) {
    parts_->scheduler.EndGrant(id);
    Drop(id, now_);
  }
  parts_->ledger.Accrue(job, std::max(now_, job.progress.as_of));
  if (job.phase.live()) {
    parts_->scheduler.Note(id, scheduler::JobChange::kLeft, now_);
  }
  const bool was_deferred = jobs_.deferred().contains(id);
  jobs_.Leave(id, model::JobPhase::kCancelled);
  eligibility_.Ended(id, was_deferred);
  job.done = at;
  job.logged = at;
  parts_->instants.AddFactOf(jobs_, id, at);
}

}  // namespace trainyard::engine
