// SPDX-License-Identifier: Apache-2.0
// A training that adapts its batch to its GPUs, as it goes on in the simulated world: it measures
// itself, fits its goodput to that, and chooses its batch by it (Pollux, OSDI'21, sections 3.3, 4.1
// and 5.3). It knows nothing of other jobs.
#pragma once

#include <optional>
#include <vector>

#include "profile/goodput/application.h"
#include "profile/goodput/goodput_report.h"
#include "profile/goodput/step_times_fit.h"
#include "trainyard/time.h"

namespace trainyard::world {

// It goes on in stretches of one pace, which end at whole minutes, where it reports and chooses its
// batch anew, and at the ends of epochs, where what larger batches are worth changes.
class Training {
 public:
  // Both must outlive the training.
  Training(const profile::Application& application, const profile::TrainingRules& rules);

  // It has these GPUs from `now` on, and trains on them after the delay.
  // REQUIRES: it has none, and a node has GPUs.
  void Start(TimePoint now, Duration delay, profile::Application::Placement placement);
  // It has none from `now` on. REQUIRES: now <= next(), if there is one.
  void Stop(TimePoint now);
  // When the present stretch ends; none: it has no GPUs, or is done.
  [[nodiscard]] std::optional<TimePoint> next() const;
  // The present stretch has ended. REQUIRES: there is one.
  void EndStretch();

  [[nodiscard]] bool done() const { return epoch_ == application_.epochs(); }
  // In iterations with the initial batch.
  [[nodiscard]] double progress() const { return progress_; }
  [[nodiscard]] int epoch() const { return epoch_; }
  [[nodiscard]] const profile::Batch& batch() const { return batch_; }
  // What it says of itself; nothing: it has not run yet.
  [[nodiscard]] std::optional<profile::GoodputReport> report() const;

 private:
  struct Stretch {
    TimePoint from{};
    TimePoint until{};
    double rate = 0;  // progress a second
    bool ends_epoch = false;
    profile::GradientNoise noise{};
    profile::MeasuredStep step{};
  };
  void BeginStretch(TimePoint from);
  void ChooseBatch();
  // It has run at the pace of the stretch.
  void Measure();

  const profile::Application& application_;
  const profile::TrainingRules& rules_;
  profile::BatchLimits limits_;
  int fixed_batch_ = 0;                        // 0: it adapts its batch
  profile::Application::Placement placement_;  // empty: it has no GPUs
  int nodes_ = 0;
  int gpus_ = 0;
  profile::Batch batch_;
  std::optional<Stretch> stretch_;
  double progress_ = 0;
  int epoch_ = 0;  // finished ones
  std::vector<profile::MeasuredStep> measured_;
  profile::StepTimes times_;  // fitted to what was measured
  profile::GradientNoise noise_;
};

}  // namespace trainyard::world
