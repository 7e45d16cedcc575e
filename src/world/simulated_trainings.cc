// SPDX-License-Identifier: Apache-2.0
#include "world/simulated_trainings.h"

#include <algorithm>
#include <bit>

namespace trainyard::world {
namespace {

profile::Application::Placement PlacementOf(const Grant& grant) {
  profile::Application::Placement placement;
  for (const Slice& slice : grant.slices) {
    placement.push_back(std::popcount(slice.gpus));
  }
  return placement;
}

}  // namespace

SimulatedTrainings::SimulatedTrainings(const profile::Applications& applications,
                                       const profile::TrainingRules& rules, const Cluster& cluster,
                                       std::shared_ptr<const std::vector<JobSpec>> jobs)
    : applications_(applications), rules_(rules), cluster_(cluster), jobs_(std::move(jobs)) {}

std::optional<TimePoint> SimulatedTrainings::next() const {
  return agenda_.empty() ? std::nullopt : std::optional(agenda_.begin()->first);
}

std::vector<model::Event> SimulatedTrainings::Advance(TimePoint now) {
  std::vector<model::Event> facts;
  while (!agenda_.empty() && agenda_.begin()->first <= now) {
    const auto [at, id] = *agenda_.begin();
    agenda_.erase(agenda_.begin());
    Training& training = trainings_.at(id).training;
    training.EndStretch();
    if (const std::optional<TimePoint> next = training.next()) {
      agenda_.emplace(*next, id);
    }
    // An epoch may take no time: what is told is what holds afterwards.
    if (training.next() != at) {
      Tell(id, at, facts);
    }
  }
  return facts;
}

void SimulatedTrainings::Tell(JobId id, TimePoint at, std::vector<model::Event>& facts) {
  Job& job = trainings_.at(id);
  if (job.training.done()) {
    facts.push_back({.at = at, .fact = model::fact::Ended{.job = id}});
    return;
  }
  facts.push_back(
      {.at = at, .fact = model::fact::Progress{.job = id, .work_done = job.training.progress()}});
  std::vector<Metric> metrics = MetricsOf(*job.training.report());
  std::vector<Metric> changed;
  std::copy_if(
      metrics.begin(), metrics.end(), std::back_inserter(changed), [&job](const Metric& metric) {
        return std::find(job.reported.begin(), job.reported.end(), metric) == job.reported.end();
      });
  if (!changed.empty()) {
    job.reported = std::move(metrics);
    facts.push_back(
        {.at = at, .fact = model::fact::Reported{.job = id, .metrics = std::move(changed)}});
  }
}

void SimulatedTrainings::Stop(JobId id, TimePoint now) {
  const auto job = trainings_.find(id);
  if (job == trainings_.end()) {
    return;
  }
  if (const std::optional<TimePoint> next = job->second.training.next()) {
    agenda_.erase({*next, id});
  }
  job->second.training.Stop(now);
}

void SimulatedTrainings::Perform(TimePoint now, std::span<const model::Action> actions) {
  for (const model::Action& action : actions) {
    switch (action.kind) {
      case model::ActionKind::kPreempt:
        Stop(action.job, now);
        break;
      case model::ActionKind::kRelease:
        trainings_.erase(action.job);
        break;
      case model::ActionKind::kLaunch:
      case model::ActionKind::kResize:
      case model::ActionKind::kMigrate: {
        Stop(action.job, now);
        const std::int32_t application = (*jobs_)[Index(action.job)].profile_row;
        Training& training =
            trainings_
                .try_emplace(
                    action.job,
                    Job{.training = Training(
                            applications_.all()[static_cast<std::size_t>(application)], rules_)})
                .first->second.training;
        training.Start(now, action.debt, PlacementOf(action.grant),
                       cluster_.nodes[Index(action.grant.slices.front().node)].gpu_type);
        agenda_.emplace(*training.next(), action.job);
        break;
      }
      case model::ActionKind::kAdmit:
      case model::ActionKind::kReject:
      case model::ActionKind::kTune:
      case model::ActionKind::kPace:
        break;
    }
  }
}

}  // namespace trainyard::world
