// SPDX-License-Identifier: Apache-2.0
// The trainings of a simulated world whose jobs adapt their batches: as the agents and workers of a
// live cluster, they take the engine's actions, and tell it facts.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "model/event.h"
#include "profile/goodput/application.h"
#include "trainyard/cluster.h"
#include "trainyard/job.h"
#include "world/training.h"

namespace trainyard::world {

class SimulatedTrainings {
 public:
  // `jobs`: of the trace, by JobId, each bound to an application by its profile_row. Applications,
  // rules and the cluster must outlive the trainings.
  SimulatedTrainings(const profile::Applications& applications, const profile::TrainingRules& rules,
                     const Cluster& cluster, std::shared_ptr<const std::vector<JobSpec>> jobs);

  // When the next one has something to tell.
  [[nodiscard]] std::optional<TimePoint> next() const;
  // What they tell up to `now`: ends; progress; and what has changed of their goodput.
  [[nodiscard]] std::vector<model::Event> Advance(TimePoint now);
  // What the engine has done at `now`. REQUIRES: all facts up to `now` have been told.
  void Perform(TimePoint now, std::span<const model::Action> actions);

 private:
  struct Job {
    Training training;
    std::vector<Metric> reported;  // so far
  };
  void Tell(JobId id, TimePoint at, std::vector<model::Event>& facts);
  void Stop(JobId id, TimePoint now);

  const profile::Applications& applications_;
  const profile::TrainingRules& rules_;
  const Cluster& cluster_;
  const std::shared_ptr<const std::vector<JobSpec>> jobs_;
  std::map<JobId, Job> trainings_;
  std::set<std::pair<TimePoint, JobId>> agenda_;
};

}  // namespace trainyard::world
