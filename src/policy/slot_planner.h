// SPDX-License-Identifier: Apache-2.0
// Plans in slots, as ElasticFlow's simulator makes them (reference 4.2): one job against what the
// others leave, without restart costs.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "policy/gpu_timeline.h"

namespace trainyard {

// A number of GPUs on which a job can run.
struct Level {
  int gpus = 0;
  double rate = 0;

  void Exchange(StateStream& state) { state(gpus, rate); }
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
  void Exchange(StateStream& state) { state(levels_, under_); }

 private:
  std::vector<Level> levels_;
  std::vector<int> under_;  // by GPUs
};

// What the planner must know of a job.
struct SlotJob {
  TimePoint deadline{};
  double work_left = 0;
  Levels levels{};

  void Exchange(StateStream& state) { state(deadline, work_left, levels); }
};

// Free GPUs over time; steps are inserted and merged exactly where the original does so.
class FreeTable {
 public:
  FreeTable() = default;
  FreeTable(TimePoint now, int gpus) : steps_{{now, gpus}} {}

  [[nodiscard]] const std::vector<GpuStep>& steps() const { return steps_; }

  // A breakpoint with the value of its predecessor, unless there is one. Returns its position.
  std::size_t Insert(TimePoint at);
  // `sign` times the plan's GPUs more are free. Its breakpoints are inserted.
  void Add(const GpuPlan& plan, int sign);
  // Takes out breakpoints at which nothing changes.
  void Merge();

 private:
  std::vector<GpuStep> steps_;
};

struct SlotPlan {
  GpuPlan plan{};  // its end lies a multiple of the slot after its last interval's begin
  TimePoint real_end{};
  bool in_time = false;
  int level = -1;  // now
  // No later change of what is open makes another plan of it; nor does one of the first step's
  // level if a level was forced.
  TimePoint seen_until{};

  [[nodiscard]] double GpuTime() const { return plan.GpuSeconds(plan.steps.front().from); }
  void Exchange(StateStream& state) { state(plan, real_end, in_time, level, seen_until); }
};

class SlotPlanner {
 public:
  SlotPlanner(TimePoint now, Duration slot) : now_(now), slot_(slot) {}

  // Breaks `free` where the slot of the job's deadline ends.
  void InsertDue(const SlotJob& job, FreeTable& free) const;

  // The plan on the least level that suffices, of what is free.
  void Plan(const SlotJob& job, const FreeTable& free, SlotPlan& plan);
  // A level is held until the next breakpoint; then as above. `present` is the plan that the job
  // has taken from `free` (or nothing), and is given back first.
  void PlanFrom(int level, const SlotJob& job, const GpuPlan& present, const FreeTable& free,
                SlotPlan& plan);

 private:
  // What is open to the job until the next step: the largest level that fits.
  struct OpenStep {
    TimePoint from{};
    int level = -1;
  };

  [[nodiscard]] TimePoint DueOf(const SlotJob& job) const;
  void Begin(const SlotJob& job, const GpuPlan& present, const FreeTable& free, SlotPlan& plan);
  void End();

  void Look(TimePoint until);
  void LookAt(std::span<const GpuStep> table, const GpuPlan& present, TimePoint until);
  void SetBreaks(const GpuPlan& present);
  [[nodiscard]] bool IsLast(std::size_t i);
  [[nodiscard]] TimePoint Until(std::size_t i) const;
  void See(TimePoint until) { plan_->seen_until = std::max(plan_->seen_until, until); }

  [[nodiscard]] bool Force(int level);
  [[nodiscard]] int LeastLevel();
  [[nodiscard]] bool Suffices(int level);
  [[nodiscard]] bool FillKnown(int level, std::size_t& i);
  void FillForward(int level);
  void EndAt(TimePoint from, double rate);

  const TimePoint now_;
  const Duration slot_;
  const GpuPlan nothing_;

  // Of the plan at hand:
  const SlotJob* job_ = nullptr;
  const GpuPlan* present_ = nullptr;
  const FreeTable* free_ = nullptr;
  SlotPlan* plan_ = nullptr;
  TimePoint due_{};        // end of the slot of its deadline
  double left_ = 0;        // work not yet planned
  std::size_t first_ = 0;  // open step to begin with
  std::size_t turn_ = 0;   // where the least level begins
  std::size_t end_ = 0;    // of the steps before `due_`

  // The breakpoints of `free_`, of `present_` and `due_`; as long as not `whole_`, until `due_`.
  std::vector<OpenStep> open_;
  std::size_t count_ = 0;
  bool whole_ = false;
  std::vector<double> seconds_;  // of the open steps before `end_`, as far as they were looked at
  double open_seconds_ = 0;      // of those on which some level fits, once all were looked at
  std::vector<GpuStep> breaks_;
};

}  // namespace trainyard
