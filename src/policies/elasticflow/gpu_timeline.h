// SPDX-License-Identifier: Apache-2.0
// A number of GPUs over time, piecewise constant: what is free in the future, or what a plan takes.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "trainyard/state.h"
#include "trainyard/time.h"

namespace trainyard::policies {

// `gpus` from `from` on, until the next step.
struct GpuStep {
  TimePoint from{};
  int gpus = 0;

  friend bool operator==(const GpuStep&, const GpuStep&) = default;
  void Serialize(StateStream& state) { state(from, gpus); }
};

// What one job is to hold: ascending steps, neighbours differ, the last one until `end`.
struct GpuPlan {
  std::vector<GpuStep> steps;
  TimePoint end{};

  // GPUs at `at`; 0 outside the plan. O(steps).
  [[nodiscard]] int At(TimePoint at) const;
  // GPU-seconds from `from` to the end.
  [[nodiscard]] double GpuSeconds(TimePoint from) const;
  // Appends a step; nothing if it only goes on. REQUIRES: not before the last step.
  void Append(TimePoint from, int gpus) {
    if (!steps.empty() && steps.back().from == from) {
      steps.pop_back();
    }
    if (steps.empty() || steps.back().gpus != gpus) {
      steps.push_back({from, gpus});
    }
  }
  // Forgets what lies before `now`.
  void CutBefore(TimePoint now);
  void Serialize(StateStream& state) { state(steps, end); }
};

// GPUs that are free from some moment to the end of time.
class GpuTimeline {
 public:
  GpuTimeline() = default;
  GpuTimeline(TimePoint from, int gpus) : steps_{{from, gpus}} {}

  [[nodiscard]] std::span<const GpuStep> steps() const { return steps_; }
  [[nodiscard]] TimePoint from() const { return steps_.front().from; }
  [[nodiscard]] int now() const { return steps_.front().gpus; }  // free at from()

  // The plan's GPUs are no longer free, or free again. Parts of the plan before from() do not
  // count. Equal neighbours are merged. O(steps of both).
  void Take(const GpuPlan& plan) { Add(plan, -1); }
  void Return(const GpuPlan& plan) { Add(plan, 1); }

 private:
  void Add(const GpuPlan& plan, int sign);

  std::vector<GpuStep> steps_;
  std::vector<GpuStep> scratch_;
};

}  // namespace trainyard::policies
