// SPDX-License-Identifier: Apache-2.0
// Plans in slots, as ElasticFlow's simulator makes them (reference 4.2): one job against what the
// others leave, without restart costs.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "policies/elasticflow/gpu_timeline.h"

namespace trainyard::originals {

// A number of GPUs on which a job can run.
struct Level {
  int gpus = 0;
  double rate = 0;

  void Serialize(StateStream& state) { state(gpus, rate); }
};

// The levels of a job, ascending; -1 is that of a job without GPUs.
class Levels {
 public:
  void Append(const Level& level);  // REQUIRES: on more GPUs than the last one
  void Clear() {
    levels_.clear();
    under_.clear();
  }

  [[nodiscard]] const Level& at(int level) const {
    return levels_[static_cast<std::size_t>(level)];
  }
  [[nodiscard]] std::span<const Level> all() const { return levels_; }
  [[nodiscard]] int most() const { return static_cast<int>(levels_.size()) - 1; }
  [[nodiscard]] int gpus(int level) const { return level < 0 ? 0 : at(level).gpus; }
  // The largest on at most so many GPUs. O(1).
  [[nodiscard]] int Under(int gpus) const {
    const int largest = static_cast<int>(under_.size()) - 1;
    return gpus < 0 ? -1 : gpus > largest ? most() : under_[static_cast<std::size_t>(gpus)];
  }
  void Serialize(StateStream& state) { state(levels_, under_); }

 private:
  std::vector<Level> levels_;
  std::vector<int> under_;  // by GPUs
};

// What the planner must know of a job.
struct SlotJob {
  TimePoint deadline{};
  double work_left = 0;
  Levels levels{};

  void Serialize(StateStream& state) { state(deadline, work_left, levels); }
};

struct SlotPlan {
  policies::GpuPlan plan{};  // its end lies a multiple of the slot after its last interval's begin
  // Where the last step ends for GpuTime() alone: the breakpoint behind the plan's end, before the
  // slot of the deadline; else the end.
  TimePoint counted_until{};
  TimePoint real_end{};
  bool in_time = false;
  int level = -1;           // now
  TimePoint seen_before{};  // nothing that is open from here on makes another plan of it

  // GPU-seconds, in which the last step counts until `counted_until`.
  [[nodiscard]] double GpuTime() const;
  // Its first change after now, the breakpoint behind its end included.
  [[nodiscard]] TimePoint Change() const {
    return plan.steps.size() > 1 ? plan.steps[1].from : counted_until;
  }
  void Serialize(StateStream& state) {
    state(plan, counted_until, real_end, in_time, level, seen_before);
  }
};

class SlotPlanner {
 public:
  SlotPlanner(TimePoint now, Duration slot) : now_(now), slot_(slot) {}

  // The plan on the least level that suffices, of what is free.
  void Plan(const SlotJob& job, const policies::GpuTimeline& free, SlotPlan& plan);
  // A level is held until the next breakpoint; then as above. `present` is the plan that the job
  // has taken from `free` (or nothing), and is given back first.
  void PlanFrom(int level, const SlotJob& job, const policies::GpuPlan& present,
                const policies::GpuTimeline& free, SlotPlan& plan);

 private:
  // What is open to the job until the next step: the largest level that fits.
  struct OpenStep {
    TimePoint from{};
    int level = -1;
  };

  void Begin(const SlotJob& job, const policies::GpuPlan& present,
             const policies::GpuTimeline& free, SlotPlan& plan);
  void End();
  void Look(std::span<const policies::GpuStep> table, const policies::GpuPlan& present);

  [[nodiscard]] int LeastLevel();
  [[nodiscard]] bool Suffices(int level);
  void Fill(int level);
  void FillLate(const policies::GpuTimeline& free);
  [[nodiscard]] const Level* Hold(TimePoint from, int level);
  void EndInSlots(TimePoint from, double rate);
  void EndAligned(TimePoint from, double rate);

  const TimePoint now_;
  const Duration slot_;

  // Of the plan at hand:
  const SlotJob* job_ = nullptr;
  SlotPlan* plan_ = nullptr;
  TimePoint due_{};        // end of the slot of its deadline
  double left_ = 0;        // work not yet planned
  std::size_t first_ = 0;  // open step to begin with
  std::size_t turn_ = 0;   // where the least level begins
  std::size_t end_ = 0;    // of the steps before `due_`

  // The breakpoints of what is free with the present plan given back, until `due_` at `end_`.
  std::vector<OpenStep> open_;
  std::vector<double> seconds_;  // of the open steps before `end_`, as far as they were looked at
  double open_seconds_ = 0;      // of those on which some level fits, once all were looked at
};

}  // namespace trainyard::originals
