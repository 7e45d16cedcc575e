// SPDX-License-Identifier: Apache-2.0
// For tests: trials that take the time that a function says, without running anything.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "profiler/trial.h"

namespace trainyard {

class PretendedRunner final : public profiler::TrialRunner {
 public:
  // `run`: the trial, and how many runs there were before.
  using Answer = std::function<profiler::TrialResult(const profiler::Trial&, std::size_t)>;
  explicit PretendedRunner(Answer run) : run_(std::move(run)) {}

  profiler::TrialResult Run(const profiler::Trial& trial) override {
    trials_.push_back(trial);
    return run_(trial, trials_.size() - 1);
  }
  [[nodiscard]] const std::vector<profiler::Trial>& trials() const { return trials_; }

 private:
  Answer run_;
  std::vector<profiler::Trial> trials_;
};

}  // namespace trainyard
