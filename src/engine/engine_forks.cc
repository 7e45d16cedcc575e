// SPDX-License-Identifier: Apache-2.0
// The engine at another place: forks, the forecasts that a selector makes of them, and what is
// saved of the engine and resumed.
#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "engine/engine.h"
#include "model/job_fields.h"

namespace trainyard::engine {

// ------------------------------------------------- forks, and the forecasts that a selector sees

std::unique_ptr<Engine> Engine::Fork() const {
  StateStream written;
  const_cast<Engine*>(this)->Serialize(written);  // NOLINT: writing changes nothing
  return ForkFrom(written.bytes());
}

// `state`: as Serialize has just written it.
std::unique_ptr<Engine> Engine::ForkFrom(std::string_view state) const {
  auto fork = std::make_unique<Engine>(EngineSetup{.configuration = parts_->configuration,
                                                   .measured = parts_->book(),
                                                   .numbers = &numbers_,
                                                   .configurations = configurations_});
  fork->selector_ = selector_;
  fork->paused_ = paused_;
  if (selector_ == nullptr) {  // otherwise Serialize uses the candidate in charge
    fork->Use(parts_->scheduler.bundle());
  }
  fork->jobs_ = jobs_;  // their specifications are shared
  fork->jobs_.Watch(nullptr);
  StateStream read{state};
  fork->Serialize(read);
  CHECK(read.complete());
  return fork;
}

void Engine::DecideBy(const scheduler::Bundle& bundle) {
  selector_ = nullptr;
  in_charge_ = 0;
  if (!(bundle == parts_->scheduler.bundle())) {
    Use(bundle);
    parts_->scheduler.Join(now_);
    parts_->instants.WakeAt(now_);
  }
}

void Engine::EndOverdueJobs() {
  for (std::optional<TimePoint> next = next_end(); next && *next < now_; next = next_end()) {
    const JobId job = parts_->ends.first();
    const TimePoint before = jobs_[job].forecast.logged;
    jobs_[job].forecast = {.done = now_, .logged = now_};
    parts_->ends.Schedule(records(), job, before);
  }
}

// `now`: what all forks of one decision begin with.
Selector::Outlook Engine::OutlookOf(std::string_view now, std::size_t candidate,
                                    std::optional<Duration> horizon) const {
  const std::unique_ptr<Engine> fork = ForkFrom(now);
  fork->DecideBy(configuration().candidates[candidate]);
  Selector::Outlook outlook;
  if (const Status run = configuration().forks->Run(
          *fork, horizon ? std::optional(now_ + *horizon) : std::nullopt);
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
  parts_->scheduler.Use(bundle);
  parts_->views.SetWork(parts_->scheduler.traits().needs.work_left);
}

void Engine::ChooseBundle(TimePoint now) {
  StateStream state;
  Serialize(state);
  const auto forecast = [&](std::size_t candidate, std::optional<Duration> horizon) {
    return OutlookOf(state.bytes(), candidate, horizon);
  };
  const Selector::Choice choice =
      selector_->Choose(MakeSnapshot(now), configuration().candidates.size(), forecast);
  if (observer_ != nullptr) {
    observer_->OnChoice(now, choice);
  }
  CHECK(choice.candidate < configuration().candidates.size());
  if (choice.candidate != in_charge_) {
    in_charge_ = choice.candidate;
    Use(configuration().candidates[in_charge_]);
    parts_->scheduler.Join(now_);
  }
}

// ----------------------------------------------------------------------------- saved and resumed

// Not saved, as decisions do not depend on it: the shape of heaps; marks of past decisions; what a
// placement that starts afresh has placed last, which it would place so again; what is there during
// a step only.
void Engine::Serialize(StateStream& state) {
  std::set<JobId> ends = parts_->ends.jobs();
  jobs_.Serialize(state);
  parts_->instants.Serialize(state);
  parts_->charges.Serialize(state);
  state(nodes_, ends, first_end_, first_end_early_, parts_->choices, in_charge_, now_, decisions_,
        events_, resized_);
  if (state.job_fields() > model::kFieldsBeforeConditions) {
    eligibility_.Serialize(state);
  } else if (state.reading()) {
    eligibility_.BarAll(jobs_.held());
  }
  if (state.reading()) {
    // All jobs, nodes and components that it speaks of are there.
    const bool is_possible =
        state.good() && nodes_.all().size() == cluster().nodes.size() &&
        in_charge_ < std::max<std::size_t>(configuration().candidates.size(), 1) &&
        (selector_ != nullptr || in_charge_ == 0) && jobs_.IsPossible(cluster().nodes.size()) &&
        eligibility_.IsPossible() && (ends.empty() || Index(*ends.rbegin()) < jobs_.size());
    if (!is_possible) {
      return state.Fail();
    }
    jobs_.Resume(nodes_.JobsFinishing(parts_->choices.classes()));
    parts_->charges.CountDecisions(decisions_);
    parts_->views.SetNow(now_);
    Use(selector_ != nullptr ? configuration().candidates[in_charge_]
                             : scheduler::Bundle(parts_->scheduler.bundle()));
    if (!parts_->grants.OccupyAll()) {
      return state.Fail();
    }
    for (const JobId job : ends) {
      parts_->ends.Schedule(records(), job, kEndOfTime);
    }
  }
  parts_->scheduler.Serialize(state);
}

void Engine::SerializeMeasured(StateStream& state) {
  if (parts_->measured != nullptr) {
    state(parts_->measured->book());
  }
}

}  // namespace trainyard::engine
