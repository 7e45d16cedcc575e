// SPDX-License-Identifier: Apache-2.0
// A training that adapts its batch to its GPUs, as it goes on in the simulated world: it measures
// itself, fits its goodput to that, and chooses its batch by it (Pollux, OSDI'21, sections 3.3, 4.1
// and 5.3). It knows nothing of other jobs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
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
  // REQUIRES: it has none, a node has GPUs, and the application runs on the type.
  void Start(TimePoint now, Duration delay, profile::Application::Placement placement,
             std::string_view gpu_type = {});
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
  // What it says of itself, on the type of GPU where it has measured itself last; nothing: it has
  // not run yet.
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
  // What it has measured on one type of GPU, and the times that are fitted to that.
  struct Measured {
    std::vector<profile::MeasuredStep> steps;
    profile::StepTimes times;
  };
  void BeginStretch(TimePoint from);
  void ChooseBatch();
  // It has run at the pace of the stretch.
  void Measure();

  const profile::Application& application_;
  const profile::TrainingRules& rules_;
  profile::BatchLimits limits_;                // on the type of its GPUs
  int fixed_batch_ = 0;                        // 0: it adapts its batch
  profile::Application::Placement placement_;  // empty: it has no GPUs
  int nodes_ = 0;
  int gpus_ = 0;
  profile::Batch batch_;
  std::optional<Stretch> stretch_;
  double progress_ = 0;
  int epoch_ = 0;                             // finished ones
  double slower_ = 1;                         // TrainingRules
  std::string type_;                          // of its GPUs, or of those that it had last
  std::map<std::string, Measured> measured_;  // by type
  std::string measured_on_;                   // the type where it has measured itself last
  profile::GradientNoise noise_;              // of the last stretch
};

}  // namespace trainyard::world
