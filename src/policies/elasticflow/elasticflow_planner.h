// SPDX-License-Identifier: Apache-2.0
// How an elastic job can be finished by its deadline with the GPUs that will be free (ElasticFlow,
// ASPLOS'23, section 4.1: minimum satisfactory share, progressive filling). Restart costs are part
// of every plan, so that a plan that is followed is kept to the microsecond.
#pragma once

#include <optional>
#include <vector>

#include "policies/elasticflow/gpu_timeline.h"
#include "trainyard/snapshot.h"
#include "trainyard/state.h"
#include "trainyard/time.h"

namespace trainyard::policies {

// The GPU counts that are worth having: each faster than all smaller ones.
struct Scaling {
  struct Level {
    int gpus = 0;
    double rate = 0;  // units of work per second
    Duration start{0};
    Duration restart{0};
    Duration resize{0};

    void Serialize(StateStream& state) { state(gpus, rate, start, restart, resize); }
  };
  std::vector<Level> levels;  // ascending in GPUs and in rate

  // The largest level of at most `gpus` GPUs; -1: none.
  [[nodiscard]] int Under(int gpus) const;
  [[nodiscard]] int most() const { return static_cast<int>(levels.size()) - 1; }
  void Serialize(StateStream& state) { state(levels); }
};

// Of a job without profile: the GPUs that it asks for.
[[nodiscard]] Scaling ScalingOf(const JobSpec& job, const ExecutionModel& rates,
                                const RestartCosts& costs);

// The most GPUs that the published programs give a job: its batch size, at most 64.
[[nodiscard]] int PublishedCap(const JobSpec& job);

// A job at one moment of a plan.
struct PlannedState {
  TimePoint at{};
  double work_left = 0;
  int level = -1;  // held; -1: no GPUs
  bool started = false;
  Duration debt{0};  // restart cost not yet paid
};

// Plans one job against what the others leave free. A const view of its arguments, which must
// outlive it. Costs below: O(intervals of `free` x levels).
class JobPlanner {
 public:
  JobPlanner(const Scaling& scaling, const GpuTimeline& free) : scaling_(scaling), free_(free) {}

  // The least GPUs that finish the work by `deadline`, the more expensive ones as late as possible;
  // nothing if no number of GPUs does.
  [[nodiscard]] std::optional<GpuPlan> InTime(const PlannedState& from, TimePoint deadline) const;

  // As many GPUs as help, as soon as they are free. Nothing if that takes for ever.
  [[nodiscard]] std::optional<GpuPlan> Soonest(const PlannedState& from) const;

  // Holds `level` as long as that is free, then goes on InTime.
  [[nodiscard]] std::optional<GpuPlan> InTimeHolding(int level, const PlannedState& from,
                                                     TimePoint deadline) const;

  // Holds `level` as long as that is free.
  [[nodiscard]] std::optional<GpuPlan> Holding(int level, const PlannedState& from) const;

  // Whether holding `level` for as long as that is free brings the job, which holds from.level now,
  // further than staying there, the resize and the way back included. REQUIRES: 0 <= from.level <
  // level.
  [[nodiscard]] bool RaisePays(int level, const PlannedState& from) const;

  // When a plan that was made earlier ends if it is followed from `from` on; nothing if never.
  [[nodiscard]] std::optional<TimePoint> EndOf(const GpuPlan& plan, const PlannedState& from) const;

 private:
  // `low` until `turn`, `high` from then on, or what is free of it.
  struct Filling {
    int low = -1;
    int high = -1;
    TimePoint turn{};
  };

  void Switch(PlannedState& state, int level) const;
  // False: the work is done before `until`; the state is at that end.
  bool Run(PlannedState& state, TimePoint until) const;
  [[nodiscard]] int LevelFor(int wanted, int free) const;
  [[nodiscard]] TimePoint FreeUntil(int gpus, TimePoint from) const;
  // Work that is left at `deadline`; negative: there is room to spare.
  [[nodiscard]] double LeftAt(TimePoint deadline, PlannedState state, const Filling& filling) const;
  [[nodiscard]] Filling LatestTurn(const PlannedState& from, TimePoint deadline, int high) const;
  [[nodiscard]] std::optional<GpuPlan> Build(PlannedState state, const Filling& filling) const;
  template <typename Visit>  // visit(from, until, wanted level) -> go on?
  void Walk(TimePoint from, TimePoint until, const Filling& filling, const Visit& visit) const;

  const Scaling& scaling_;
  const GpuTimeline& free_;
};

}  // namespace trainyard::policies
