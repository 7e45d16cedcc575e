// SPDX-License-Identifier: Apache-2.0
#include "policies/elasticflow/elasticflow_planner.h"

#include <algorithm>
#include <cmath>

namespace trainyard::policies {

int Scaling::Under(int gpus) const {
  int level = most();
  while (level >= 0 && levels[static_cast<std::size_t>(level)].gpus > gpus) {
    --level;
  }
  return level;
}

Scaling ScalingOf(const JobSpec& job, const ExecutionModel& rates, const RestartCosts& costs) {
  Scaling scaling;
  const auto add = [&](int gpus, double rate) {
    scaling.levels.push_back({.gpus = gpus,
                              .rate = rate,
                              .start = costs.Of(job, Change::kStart, gpus),
                              .restart = costs.Of(job, Change::kRestart, gpus),
                              .resize = costs.Of(job, Change::kResize, gpus)});
  };
  double best = 0;
  for (const int gpus : rates.Levels(job)) {
    const double rate = rates.Rate(job, gpus);
    if (rate > best) {
      best = rate;
      add(gpus, rate);
    }
  }
  if (rates.Levels(job).empty() && job.gpus > 0) {  // no profile: the GPUs that it asks for
    if (const double rate = rates.Rate(job, job.gpus); rate > 0) {
      add(job.gpus, rate);
    }
  }
  return scaling;
}

int PublishedCap(const JobSpec& job) {
  constexpr std::int64_t kMostGpus = 64;
  return static_cast<int>(job.batch_size > 0 ? std::min(job.batch_size, kMostGpus) : kMostGpus);
}

void JobPlanner::Switch(PlannedState& state, int level) const {
  if (level == state.level) {
    return;
  }
  if (level < 0) {
    state.debt = Duration{0};
  } else {
    const Scaling::Level& to = scaling_.levels[static_cast<std::size_t>(level)];
    state.debt += state.level >= 0 ? to.resize : state.started ? to.restart : to.start;
    state.started = true;
  }
  state.level = level;
}

bool JobPlanner::Run(PlannedState& state, TimePoint until) const {
  const Duration paid = std::min(state.debt, until - state.at);
  state.at += paid;
  state.debt -= paid;
  if (state.level < 0 || state.at == until) {
    state.at = until;
    return true;
  }
  const double rate = scaling_.levels[static_cast<std::size_t>(state.level)].rate;
  const double seconds = state.work_left / rate;
  if (seconds <= Seconds(until - state.at)) {
    const TimePoint end = state.at + CeilFromSeconds(seconds);
    if (end <= until) {
      state.at = end;
      state.work_left = 0;
      return false;
    }
  }
  state.work_left -= Seconds(until - state.at) * rate;
  state.at = until;
  return true;
}

int JobPlanner::LevelFor(int wanted, int free) const {
  return wanted < 0 || scaling_.levels[static_cast<std::size_t>(wanted)].gpus <= free
             ? wanted
             : std::min(wanted, scaling_.Under(free));
}

template <typename Visit>
void JobPlanner::Walk(TimePoint from, TimePoint until, const Filling& filling,
                      const Visit& visit) const {
  const std::span<const GpuStep> steps = free_.steps();
  auto step = std::upper_bound(steps.begin(), steps.end(), from,
                               [](TimePoint at, const GpuStep& s) { return at < s.from; });
  --step;
  for (TimePoint at = from; at < until;) {
    TimePoint stop = step + 1 != steps.end() ? std::min(until, (step + 1)->from) : until;
    const bool low = at < filling.turn;
    const bool turns = low && filling.turn < stop;
    stop = turns ? filling.turn : stop;
    if (!visit(at, stop, LevelFor(low ? filling.low : filling.high, step->gpus))) {
      return;
    }
    at = stop;
    if (!turns) {
      ++step;
    }
  }
}

double JobPlanner::LeftAt(TimePoint deadline, PlannedState state, const Filling& filling) const {
  Walk(state.at, deadline, filling, [&](TimePoint from, TimePoint until, int level) {
    Switch(state, level);
    if (level >= 0) {
      const Duration paid = std::min(state.debt, until - from);
      state.debt -= paid;
      state.work_left -=
          Seconds(until - from - paid) * scaling_.levels[static_cast<std::size_t>(level)].rate;
    }
    return true;
  });
  return state.work_left;
}

// The last moment to turn to `high`; REQUIRES: turning at once is in time.
JobPlanner::Filling JobPlanner::LatestTurn(const PlannedState& from, TimePoint deadline,
                                           int high) const {
  const auto filling = [high](TimePoint turn) {
    return Filling{.low = high - 1, .high = high, .turn = turn};
  };
  const std::span<const GpuStep> steps = free_.steps();
  const auto first = std::upper_bound(steps.begin(), steps.end(), from.at,
                                      [](TimePoint at, const GpuStep& s) { return at < s.from; });
  const auto last = std::lower_bound(first, steps.end(), deadline,
                                     [](const GpuStep& s, TimePoint at) { return s.from < at; });
  const auto late = std::partition_point(first, last, [&](const GpuStep& step) {
    return LeftAt(deadline, from, filling(step.from)) <= 0;
  });
  // Whole seconds are fine enough; finer, and every turn would be put off once more when it comes.
  TimePoint good = late == first ? from.at : (late - 1)->from;
  TimePoint bad = late == last ? deadline : late->from;
  while (bad - good > std::chrono::seconds(1)) {
    const TimePoint middle = good + (bad - good) / 2;
    (LeftAt(deadline, from, filling(middle)) <= 0 ? good : bad) = middle;
  }
  return filling(good);
}

std::optional<GpuPlan> JobPlanner::Build(PlannedState state, const Filling& filling) const {
  GpuPlan plan;
  bool done = false;
  Walk(state.at, kEndOfTime, filling, [&](TimePoint from, TimePoint until, int level) {
    Switch(state, level);
    plan.Append(from, level < 0 ? 0 : scaling_.levels[static_cast<std::size_t>(level)].gpus);
    done = !Run(state, until);
    return !done;
  });
  plan.end = state.at;
  return done ? std::optional(std::move(plan)) : std::nullopt;
}

std::optional<GpuPlan> JobPlanner::InTime(const PlannedState& from, TimePoint deadline) const {
  if (deadline <= from.at) {
    return std::nullopt;
  }
  const double seconds = Seconds(deadline - from.at);
  for (int high = 0; high <= scaling_.most(); ++high) {
    if (seconds * scaling_.levels[static_cast<std::size_t>(high)].rate < from.work_left ||
        LeftAt(deadline, from, {.low = high, .high = high, .turn = from.at}) > 0) {
      continue;
    }
    std::optional<GpuPlan> plan = Build(from, LatestTurn(from, deadline, high));
    if (plan && plan->end <= deadline) {
      return plan;
    }
  }
  return std::nullopt;
}

std::optional<GpuPlan> JobPlanner::Soonest(const PlannedState& from) const {
  return Build(from, {.low = -1, .high = scaling_.most(), .turn = from.at});
}

// How long so many GPUs stay free.
TimePoint JobPlanner::FreeUntil(int gpus, TimePoint from) const {
  const std::span<const GpuStep> steps = free_.steps();
  const auto fewer = std::find_if(steps.begin(), steps.end(), [&](const GpuStep& step) {
    return step.from > from && step.gpus < gpus;
  });
  return fewer == steps.end() ? kEndOfTime : fewer->from;
}

std::optional<GpuPlan> JobPlanner::InTimeHolding(int level, const PlannedState& from,
                                                 TimePoint deadline) const {
  const int gpus = scaling_.levels[static_cast<std::size_t>(level)].gpus;
  const TimePoint until = FreeUntil(gpus, from.at);
  PlannedState state = from;
  Switch(state, level);
  GpuPlan plan;
  plan.Append(from.at, gpus);
  if (!Run(state, until)) {
    plan.end = state.at;
    return plan.end <= deadline ? std::optional(std::move(plan)) : std::nullopt;
  }
  const std::optional<GpuPlan> rest = InTime(state, deadline);
  if (!rest) {
    return std::nullopt;
  }
  for (const GpuStep& step : rest->steps) {
    plan.Append(step.from, step.gpus);
  }
  plan.end = rest->end;
  return plan;
}

std::optional<GpuPlan> JobPlanner::Holding(int level, const PlannedState& from) const {
  const int gpus = scaling_.levels[static_cast<std::size_t>(level)].gpus;
  const TimePoint until = FreeUntil(gpus, from.at);
  PlannedState state = from;
  Switch(state, level);
  GpuPlan plan;
  plan.Append(from.at, gpus);
  if (state.debt >= until - state.at) {
    return std::nullopt;  // all restart, no progress
  }
  Run(state, until);
  plan.end = state.at;
  return plan;
}

bool JobPlanner::RaisePays(int level, const PlannedState& from) const {
  const TimePoint until = FreeUntil(scaling_.levels[static_cast<std::size_t>(level)].gpus, from.at);
  PlannedState stays = from;
  PlannedState raised = from;
  Switch(raised, level);
  const bool stays_on = Run(stays, until);
  const bool raised_on = Run(raised, until);
  if (!raised_on || !stays_on) {
    return !raised_on && (stays_on || raised.at < stays.at);
  }
  const Scaling::Level& held = scaling_.levels[static_cast<std::size_t>(from.level)];
  const auto behind = [&held](const PlannedState& state, Duration cost) {
    return state.work_left / held.rate + Seconds(state.debt + cost);
  };
  return behind(raised, held.resize) < behind(stays, Duration{0});
}

std::optional<TimePoint> JobPlanner::EndOf(const GpuPlan& plan, const PlannedState& from) const {
  PlannedState state = from;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const TimePoint until = i + 1 < plan.steps.size() ? plan.steps[i + 1].from : kEndOfTime;
    Switch(state, scaling_.Under(plan.steps[i].gpus));
    if (!Run(state, until)) {
      return state.at;
    }
  }
  return std::nullopt;
}

}  // namespace trainyard::policies
