// SPDX-License-Identifier: Apache-2.0
// A world without machines: submits come from a trace, node failures from the cluster file, and
// ends from the engine's own ledger.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/world.h"
#include "trainyard/job.h"
#include "world/simulated_trainings.h"

namespace trainyard::world {

using TrackedJobs = std::pair<JobId, JobId>;  // the first and the last, both included

// When a run ends before everything has happened.
struct StopRule {
  std::optional<TimePoint> until;      // nothing later than this happens
  std::optional<TrackedJobs> tracked;  // the run ends when these have ended
};

class SimulatedWorld final : public engine::World {
 public:
  // Submits the jobs in order of submit time, then row. `jobs` is shared with the engine's records;
  // `engine` and `cluster` must outlive the world.
  SimulatedWorld(std::shared_ptr<const std::vector<JobSpec>> jobs, const Cluster& cluster,
                 engine::Engine& engine, StopRule stop = {});

  // Before the first batch: facts at times to come, by time.
  void Plan(std::vector<model::Event> facts) { planned_ = std::move(facts); }
  // Before the first batch: all jobs are these trainings, of which the world knows more than the
  // engine.
  void TrainBy(std::unique_ptr<SimulatedTrainings> trainings) { trainings_ = std::move(trainings); }
  [[nodiscard]] model::Batch Next(std::optional<TimePoint> wake_at) override;
  [[nodiscard]] Status Perform(TimePoint now, std::span<const model::Action> actions) override;

  // Called after each batch with the number of ended jobs, for progress bars.
  void OnProgress(std::function<void(std::size_t)> callback) { on_progress_ = std::move(callback); }
  [[nodiscard]] TimePoint now() const { return now_; }

 private:
  [[nodiscard]] bool Stopped() const;
  void AddNodeChanges(model::Batch& batch);
  void AddSubmits(model::Batch& batch);

  std::shared_ptr<const std::vector<JobSpec>> jobs_;
  const Cluster& cluster_;
  engine::Engine& engine_;
  const StopRule stop_;
  std::vector<std::uint32_t> order_;  // rows by submit time
  std::size_t next_submit_ = 0;
  std::size_t next_change_ = 0;
  std::vector<model::Event> planned_;
  std::size_t next_planned_ = 0;
  std::unique_ptr<SimulatedTrainings> trainings_;  // null: the engine predicts ends
  std::size_t ended_ = 0;
  std::size_t tracked_left_ = 0;
  std::function<void(std::size_t)> on_progress_;
  TimePoint now_;
};

}  // namespace trainyard::world
