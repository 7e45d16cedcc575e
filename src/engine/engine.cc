// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/earlier.h"
#include "base/rounding.h"
#include "base/try.h"
#include "model/conditions.h"
#include "model/slices.h"

namespace trainyard::engine {
namespace {

std::optional<profile::MeasuredBook> BookOf(const profile::MeasuredModel* measured) {
  return measured == nullptr ? std::nullopt : std::optional(measured->book());
}

std::unique_ptr<profile::MeasuredModel> CorrectedBy(const profile::Corrector& corrector,
                                                    std::optional<profile::MeasuredBook> book,
                                                    const ExecutionModel& stated,
                                                    const Cluster& cluster) {
  if (!book) {
    return nullptr;
  }
  return corrector ? corrector(*std::move(book), stated, cluster)
                   : std::make_unique<profile::MeasuredModel>(*std::move(book), stated, cluster);
}

}  // namespace

Engine::Engine(EngineSetup setup)
    : rules_(setup.rules),
      cluster_(std::move(setup.cluster)),
      stated_rates_(*setup.rates),
      corrector_(std::move(setup.corrector)),
      measured_(CorrectedBy(corrector_, std::move(setup.measured), stated_rates_, cluster_)),
      rates_(measured_ ? *measured_ : stated_rates_),
      observer_(setup.observer),
      selector_(setup.selector),
      candidates_(std::move(setup.candidates)),
      forks_(setup.forks),
      nodes_up_(cluster_.nodes.size(), true),
      gpus_up_(cluster_.total_gpus()),
      ends_(rules_.published),
      ledger_(rules_, rates_),
      charges_(rules_, cluster_, ledger_, std::move(setup.overheads),
               measured_ ? &measured_->book() : nullptr),
      grants_(cluster_, rates_, setup.bundle.traits().may.share, jobs_, ledger_, charges_),
      views_(cluster_, jobs_, ledger_),
      instants_(rules_),
      numbers_(*setup.numbers),
      eligibility_(jobs_, numbers_),
      types_(cluster_, stated_rates_),  // the same classes of demands for ever
      scheduler_({.cluster = cluster_,
                  .nodes_up = nodes_up_,
                  .jobs = jobs_,
                  .views = views_,
                  .data = charges_.data(),
                  .types = types_},
                 setup.bundle, rules_.preemption.rule == model::Preemption::Rule::kSound) {
  views_.SetWork(scheduler_.traits().needs.work_left);
}

// ------------------------------------------------- forks, and the forecasts that a selector sees

std::unique_ptr<Engine> Engine::Fork() {
  StateStream written;
  Serialize(written);
  return ForkFrom(written.bytes());
}

// `state`: as Serialize has just written it.
std::unique_ptr<Engine> Engine::ForkFrom(std::string_view state) const {
  auto fork = std::make_unique<Engine>(EngineSetup{.rules = rules_,
                                                   .cluster = cluster_,
                                                   .bundle = scheduler_.bundle(),
                                                   .selector = selector_,
                                                   .candidates = candidates_,
                                                   .forks = forks_,
                                                   .rates = &stated_rates_,
                                                   .overheads = charges_.overheads(),
                                                   .measured = BookOf(measured_.get()),
                                                   .corrector = corrector_,
                                                   .numbers = &numbers_});
  fork->jobs_ = jobs_;  // their specifications are shared
  StateStream read{state};
  fork->Serialize(read);
  CHECK(read.complete());
  return fork;
}

void Engine::DecideBy(const scheduler::Bundle& bundle) {
  selector_ = nullptr;
  in_charge_ = 0;
  if (!(bundle == scheduler_.bundle())) {
    Use(bundle);
    scheduler_.Join(now_);
    instants_.WakeAt(now_);
  }
}

void Engine::EndOverdueJobs() {
  for (std::optional<TimePoint> next = next_end(); next && *next < now_; next = next_end()) {
    const JobId job = ends_.first();
    const TimePoint before = jobs_[job].forecast.logged;
    jobs_[job].forecast = {.done = now_, .logged = now_};
    ends_.Schedule(records(), job, before);
  }
}

// `now`: what all forks of one decision begin with.
Selector::Outlook Engine::OutlookOf(std::string_view now, std::size_t candidate,
                                    std::optional<Duration> horizon) const {
  const std::unique_ptr<Engine> fork = ForkFrom(now);
  fork->DecideBy(candidates_[candidate]);
  Selector::Outlook outlook;
  if (const Status run =
          forks_->Run(*fork, horizon ? std::optional(now_ + *horizon) : std::nullopt);
      !run.ok()) {
    outlook.error = run.error().message;
  }
  Duration sum{0};
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const model::JobRecord& before = jobs_[JobAt(i)];
    const model::JobRecord& after = fork->jobs_[JobAt(i)];
    if (after.phase.get() == model::JobPhase::kCompleted &&
        before.phase.get() != model::JobPhase::kCompleted) {
      ++outlook.jobs;
      sum += after.logged - after.spec->submit;
    }
  }
  if (outlook.jobs > 0) {
    outlook.mean_jct = Seconds(sum) / static_cast<double>(outlook.jobs);
  }
  return outlook;
}

// Another bundle takes over.
void Engine::Use(const scheduler::Bundle& bundle) {
  scheduler_.Use(bundle);
  views_.SetWork(scheduler_.traits().needs.work_left);
}

void Engine::ChooseBundle(TimePoint now) {
  StateStream state;
  Serialize(state);
  const auto forecast = [&](std::size_t candidate, std::optional<Duration> horizon) {
    return OutlookOf(state.bytes(), candidate, horizon);
  };
  const Selector::Choice choice =
      selector_->Choose(MakeSnapshot(now), candidates_.size(), forecast);
  if (observer_ != nullptr) {
    observer_->OnChoice(now, choice);
  }
  CHECK(choice.candidate < candidates_.size());
  if (choice.candidate != in_charge_) {
    in_charge_ = choice.candidate;
    Use(candidates_[in_charge_]);
    scheduler_.Join(now_);
  }
}

// ----------------------------------------------------------------------------- saved and resumed

// Not saved, as decisions do not depend on it: the shape of heaps; marks of past decisions; what a
// placement that starts afresh has placed last, which it would place so again; what is there during
// a step only.
void Engine::Serialize(StateStream& state) {
  std::set<JobId> ends = ends_.jobs();
  jobs_.Serialize(state);
  instants_.Serialize(state);
  charges_.Serialize(state);
  state(nodes_up_, gpus_up_, node_changes_, ends, first_end_, first_end_early_, types_, in_charge_,
        now_, decisions_, events_, resized_);
  if (state.job_fields() > model::kFieldsBeforeConditions) {
    eligibility_.Serialize(state);
  } else if (state.reading()) {
    eligibility_.BarAll(jobs_.held());
  }
  if (state.reading()) {
    if (!state.good() || !IsPossible() || !eligibility_.IsPossible() ||
        (!ends.empty() && Index(*ends.rbegin()) >= jobs_.size())) {
      return state.Fail();
    }
    jobs_.Resume();
    charges_.CountDecisions(decisions_);
    views_.SetNow(now_);
    Use(selector_ != nullptr ? candidates_[in_charge_] : scheduler::Bundle(scheduler_.bundle()));
    if (!grants_.OccupyAll()) {
      return state.Fail();
    }
    for (const JobId job : ends) {
      ends_.Schedule(records(), job, kEndOfTime);
    }
  }
  scheduler_.Serialize(state);
}

void Engine::SerializeMeasured(StateStream& state) {
  if (measured_ != nullptr) {
    state(measured_->book());
  }
}

// Whether what has been read may be looked at: all jobs and nodes that it speaks of are there.
bool Engine::IsPossible() const {
  return nodes_up_.size() == cluster_.nodes.size() &&
         (selector_ == nullptr ? in_charge_ == 0 : in_charge_ < candidates_.size()) &&
         jobs_.IsPossible() &&
         std::all_of(jobs_.running().begin(), jobs_.running().end(), [this](JobId job) {
           const Slices& slices = jobs_[job].grant.slices;
           return std::all_of(slices.begin(), slices.end(), [this](const Slice& slice) {
             return Index(slice.node) < cluster_.nodes.size();
           });
         });
}

// ---------------------------------------------------------------------------------------- facts

std::optional<TimePoint> Engine::next_wakeup() const {
  return base::Earlier(instants_.Next(jobs_, ends_), eligibility_.next(now_));
}

Result<std::span<const model::Action>> Engine::Step(const model::Batch& batch) {
  actions_.clear();
  now_ = batch.now;
  views_.SetNow(now_);
  ledger_.SetEarly(batch.now == first_end_ ? first_end_early_ : 0);
  charges_.data().AdvanceTo(batch.now);
  for (const model::Event& event : batch.events) {
    Take(event);
  }
  while (eligibility_.IsDue(now_)) {
    TakeEligible();
  }
  if (const std::optional<TimePoint> instant = instants_.Next(jobs_, ends_);
      instant && *instant <= batch.now) {
    RETURN_IF_ERROR(Decide(batch.now));
  }
  if (observer_ != nullptr) {
    observer_->OnStep(batch.now, actions_);
  }
  return std::span<const model::Action>(actions_);
}

// ----------------------------------------------------------------------------------------- ends

std::optional<TimePoint> Engine::next_end() const {
  if (ends_.empty() || rules_.end.source == model::EndRule::Source::kFound) {
    return std::nullopt;
  }
  const JobId first = ends_.FirstToJoin(records());
  return instants_.ReleaseOf(jobs_[first].forecast.logged, jobs_, ends_);
}

std::vector<model::Event> Engine::TakeEnds(TimePoint now) {
  std::vector<model::Event> events;
  if (const std::optional<TimePoint> due = next_end(); !due || *due > now) {
    return events;  // an end that waits for its instant is not told with the facts before it
  }
  const model::Forecast first = jobs_[ends_.FirstToJoin(records())].forecast;
  first_end_ = first.logged;
  first_end_early_ = first.done == first.logged ? first.early : 0;
  const TimePoint until = std::max(now, ends_.JoinedUntil(first.logged));
  while (!ends_.empty() && jobs_[ends_.first()].forecast.logged <= until) {
    const JobId id = ends_.first();
    model::JobRecord& job = jobs_[id];
    ends_.Cancel(records(), id);
    if (ends_.Joins(job.forecast.logged, now)) {
      job.forecast = {.done = now, .logged = now};  // joins the first one
    }
    if (job.grant.gpus == 0 && !rules_.published.ends_without_gpus) {
      instants_.AddFact(job.forecast.logged);  // planned, but the job has come to hold nothing
      continue;
    }
    events.push_back({.kind = model::EventKind::kEnded, .at = job.forecast.done, .job = id});
  }
  return events;
}

void Engine::Predict(JobId id, TimePoint now, bool charge_counts) {
  model::JobRecord& job = jobs_[id];
  const TimePoint before = job.forecast.logged;
  ledger_.Predict(job, now, charge_counts);
  if (job.forecast.logged == kEndOfTime) {
    ends_.Cancel(records(), id);
  } else {
    ends_.Schedule(records(), id, before);
  }
}

// The ends of all jobs that may have moved by a decision.
void Engine::ScheduleEnds(TimePoint now) {
  if (rules_.end.source == model::EndRule::Source::kPlanned) {
    for (const PlannedEnd& end : scheduler_.planned_ends()) {
      model::JobRecord& job = jobs_[end.job];
      const TimePoint before = job.forecast.logged;
      job.forecast.logged = end.registered + job.progress.debt;
      job.forecast.done = end.done.value_or(job.forecast.logged);
      ends_.Schedule(records(), end.job, before);
    }
    return;
  }
  for (const JobId job : rules_.published.every_instant ? jobs_.running() : grants_.changed()) {
    if (jobs_[job].grant.gpus > 0) {
      Predict(job, now, charges_.restarts_all());
    }
  }
}

// ------------------------------------------------------------------------------------ decisions

Status Engine::Decide(TimePoint now) {
  if (rules_.published.every_instant) {
    BringUpToDate(now);
  }
  if (selector_ != nullptr) {
    ChooseBundle(now);
  }
  const auto judge = [this, now](std::span<const Verdict> verdicts) {
    ApplyVerdicts(verdicts, now);
  };
  // Some have ended or been resized again since they were.
  std::sort(resized_.begin(), resized_.end());
  resized_.erase(std::unique(resized_.begin(), resized_.end()), resized_.end());
  std::erase_if(resized_, [this](JobId job) { return !jobs_.IsLive(job); });
  ASSIGN_OR_RETURN(const std::vector<Verdict> verdicts, scheduler_.Admit(MakeSnapshot(now)));
  judge(verdicts);
  ASSIGN_OR_RETURN(scheduler::Selection selection, scheduler_.Decide(MakeSnapshot(now), judge));
  RETURN_IF_ERROR(Adopt(std::move(selection), now));
  charges_.AtDecision(jobs_, instants_.submits_to_come());
  AddRatesToActions();
  ScheduleEnds(now);
  for (std::size_t i = 0; eligibility_.has_limits() && i < grants_.changed().size(); ++i) {
    eligibility_.WatchLimit(grants_.changed()[i]);
  }
  instants_.WakeAt(scheduler_.Adopted(MakeSnapshot(now), grants_.changed()));
  instants_.Decided(now);
  resized_.clear();
  charges_.CountDecisions(++decisions_);
  if (observer_ != nullptr) {
    observer_->OnDecision({.now = now,
                           .gpus_used = grants_.used_gpus(),
                           .jobs_running = static_cast<std::int64_t>(jobs_.running().size()),
                           .jobs_waiting = jobs_.waiting(),
                           .gpus_up = gpus_up_});
  }
  return {};
}

// Accrues the progress of all running jobs, and takes the ends that have come without being told.
void Engine::BringUpToDate(TimePoint now) {
  std::vector<JobId> finished;
  for (const JobId id : jobs_.running()) {
    model::JobRecord& job = jobs_[id];
    if (rules_.end.source == model::EndRule::Source::kFound && job.forecast.done <= now) {
      finished.push_back(id);
      continue;
    }
    const TimePoint since = job.progress.as_of;
    const double work_before = job.progress.work_left;
    ledger_.Accrue(job, now);
    ledger_.CancelDebt(job);
    if (rules_.end.source == model::EndRule::Source::kPlanned && job.progress.work_left <= 0 &&
        now > since) {
      job.forecast.logged = since + base::CeilToSecond(work_before / job.progress.rate);
      finished.push_back(id);
    }
  }
  if (rules_.debt.charge == model::Debt::Charge::kEveryArrival) {
    for (const JobId id : jobs_.live()) {
      if (model::JobRecord& job = jobs_[id]; job.grant.gpus == 0 && job.started_late) {
        ledger_.CancelDebt(job);
      }
    }
  }
  std::sort(finished.begin(), finished.end());
  for (const JobId job : finished) {  // sooner than planned, or since the last decision
    TakeEnd({.kind = model::EventKind::kEnded, .at = jobs_[job].forecast.done, .job = job});
  }
}

Snapshot Engine::MakeSnapshot(TimePoint now) const {
  return {.now = now,
          .cluster = &cluster_,
          .gpus_up = gpus_up_,
          .nodes_up = &nodes_up_,
          .node_changes = node_changes_,
          .jobs_waiting = jobs_.waiting(),
          .gpus_asked = jobs_.gpus_asked(),
          .jobs = &views_,
          .resized = resized_,
          .unjudged = jobs_.unjudged(),
          .rates = &rates_,
          .costs = &charges_};
}

void Engine::ApplyVerdicts(std::span<const Verdict> verdicts, TimePoint now) {
  for (const Verdict& verdict : verdicts) {
    switch (verdict.judgement) {
      case Judgement::kLater:
        break;
      case Judgement::kReject:
        ledger_.Accrue(jobs_[verdict.job], now);
        jobs_.Leave(verdict.job, model::JobPhase::kRejected);
        Act(model::ActionKind::kReject, verdict.job).reason = verdict.reason;
        eligibility_.Ended(verdict.job, false);
        break;
      case Judgement::kAdmit:
        jobs_.Admit(verdict.job, now);
        (void)Act(model::ActionKind::kAdmit, verdict.job);
        scheduler_.Note(verdict.job, scheduler::JobChange::kAdmitted, now);
        break;
    }
  }
  if (!verdicts.empty()) {
    jobs_.RemoveJudged();
  }
}

// Makes the selection true: the difference between it and the present state is launches,
// preemptions, resizes and migrations.
Status Engine::Adopt(scheduler::Selection selection, TimePoint now) {
  grants_.ClearChanged();
  for (const JobId job : selection.dropped) {
    ++jobs_[job].preemptions;
    Drop(job, now);
  }
  std::vector<scheduler::Placed*> differing;
  differing.reserve(selection.placed.size());
  for (scheduler::Placed& placed : selection.placed) {
    if (placed.grant.gpus == 0) {
      jobs_.Start(placed.job, now);
      continue;
    }
    if (placed.restart || !(jobs_[placed.job].grant == placed.grant)) {
      grants_.Vacate(placed.job);
      differing.push_back(&placed);
    }
  }
  for (scheduler::Placed* placed : differing) {
    RETURN_IF_ERROR(CheckGrant(placed->job, placed->grant));
    grants_.Occupy(placed->job, placed->grant);
    if (grants_.used_gpus() > gpus_up_) {
      return scheduler_.check().Broken(placed->job, "more GPUs are granted than the cluster has");
    }
    const model::ActionKind kind = grants_.Give(*placed, now);
    if (kind != model::ActionKind::kTune) {
      jobs_[placed->job].stay = scheduler_.StayOf(placed->job, now, rules_.preemption.min_runtime);
    }
    Act(kind, placed->job).grant = std::move(placed->grant);
  }
  if (scheduler_.traits().may.share) {
    grants_.SetRatesOfNeighbours(now);
  }
  return {};
}

Status Engine::CheckGrant(JobId job, const Grant& grant) {
  if (!scheduler_.bundle().names_gpus()) {
    return {};
  }
  if (const std::string conflict = grants_.Conflict(job, grant); !conflict.empty()) {
    return scheduler_.check().Broken(job, conflict);
  }
  if (types_.several()) {
    if (const std::string conflict = types_.Conflict(*jobs_[job].spec, grant); !conflict.empty()) {
      return scheduler_.check().Broken(job, conflict);
    }
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
    if (action.grant.gpus > 0) {
      AddRate(jobs_[action.job], action);
    }
  }
  if (!scheduler_.traits().may.share) {
    return;  // no other rate has changed
  }
  std::vector<JobId> named;
  for (const model::Action& action : actions_) {
    if (action.grant.gpus > 0) {
      named.push_back(action.job);
    }
  }
  std::sort(named.begin(), named.end());
  for (const JobId job : grants_.changed()) {
    if (jobs_[job].grant.gpus > 0 && !std::binary_search(named.begin(), named.end(), job)) {
      AddRate(jobs_[job], Act(model::ActionKind::kPace, job));
    }
  }
}

// The job loses its GPUs and waits again.
void Engine::Drop(JobId job, TimePoint now) {
  grants_.Take(job, now);
  if (rules_.end.source != model::EndRule::Source::kPlanned) {
    ends_.Cancel(records(), job);
  }
  if (eligibility_.has_limits()) {
    eligibility_.WatchLimit(job);
  }
  (void)Act(model::ActionKind::kPreempt, job);
}

// ---------------------------------------------------------------------------------------- views

std::optional<Deferral> Engine::WhyDeferred(JobId job) const {
  return jobs_.deferred().contains(job) ? std::optional(eligibility_.WhyDeferred(job))
                                        : std::nullopt;
}

const model::Blocked* Engine::blocked(JobId job) const {
  const JobSpec& spec = *jobs_[job].spec;
  const std::optional<scheduler::DemandClass> of = types_.KnownClassOf(spec, spec.gpus);
  const std::span<const model::Blocked> all = blocked();
  const auto found = std::find_if(all.begin(), all.end(), [&of](const model::Blocked& blocked) {
    return of && blocked.gpus == of->gpus && blocked.kind == of->kind;
  });
  return found == all.end() ? nullptr : &*found;
}

model::Progress Engine::ProgressOf(JobId id, TimePoint now) const {
  const model::JobRecord& job = jobs_[id];
  return job.phase.get() >= model::JobPhase::kCompleted
             ? job.progress
             : ledger_.ProgressAt(job, std::max(now, job.progress.as_of));
}

std::optional<TimePoint> Engine::first_forecast() const {
  return ends_.empty() ? std::nullopt : std::optional(jobs_[ends_.first()].forecast.logged);
}

std::vector<JobId> Engine::OverdueBy(TimePoint now) const {
  std::vector<JobId> overdue;
  for (const std::uint32_t job : ends_.members()) {
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
      ledger_.Accrue(job, std::max(now, job.progress.as_of));
    }
  }
  if (observer_ != nullptr) {
    observer_->OnStep(now, {});
  }
}

}  // namespace trainyard::engine
