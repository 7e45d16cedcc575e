// SPDX-License-Identifier: Apache-2.0
#include "policy/slot_planner.h"

#include <algorithm>
#include <span>

#include "base/rounding.h"

namespace trainyard {
namespace {

// Not NextMultiple(): a length below 0 (a job that its forced level would finish, but too late)
// goes back in time, in slots rounded towards 0.
TimePoint SlotsAfter(TimePoint from, Duration length, Duration slot) {
  const std::int64_t slots = length.count() <= 0
                                 ? length.count() / slot.count()
                                 : (length.count() + slot.count() - 1) / slot.count();
  return from + slots * slot;
}

}  // namespace

void Levels::Append(const Level& level) {
  under_.resize(static_cast<std::size_t>(level.gpus), most());
  levels_.push_back(level);
  under_.push_back(most());
}

// ---------------------------------------------------------------------------------------- tables

std::size_t FreeTable::Insert(TimePoint at) {
  const auto place =
      std::lower_bound(steps_.begin(), steps_.end(), at,
                       [](const GpuStep& step, TimePoint t) { return step.from < t; });
  const auto index = static_cast<std::size_t>(place - steps_.begin());
  if (place == steps_.end() || place->from != at) {
    steps_.insert(place, {at, place == steps_.begin() ? 0 : (place - 1)->gpus});
  }
  return index;
}

void FreeTable::Add(const GpuPlan& plan, int sign) {
  std::size_t first = Insert(plan.steps.front().from);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const bool last = i + 1 == plan.steps.size();
    const std::size_t next = Insert(last ? plan.end : plan.steps[i + 1].from);
    for (std::size_t step = first; step < next; ++step) {
      steps_[step].gpus += sign * plan.steps[i].gpus;
    }
    first = next;
  }
}

void FreeTable::Merge() {
  const auto merged =
      std::unique(steps_.begin(), steps_.end(),
                  [](const GpuStep& a, const GpuStep& b) { return a.gpus == b.gpus; });
  steps_.erase(merged, steps_.end());
}

// ----------------------------------------------------------------------------------- what is open

TimePoint SlotPlanner::DueOf(const SlotJob& job) const {
  return SlotsAfter(now_, job.deadline - now_, slot_);
}

void SlotPlanner::InsertDue(const SlotJob& job, FreeTable& free) const {
  if (const TimePoint due = DueOf(job); due >= now_) {
    free.Insert(due);
  }
}

// Sets the open steps up to the one that begins at `until` (`due_`, or all).
void SlotPlanner::Look(TimePoint until) {
  whole_ = until == kEndOfTime;
  if (present_->steps.empty() || present_->steps.back().from < present_->end) {
    return LookAt(free_->steps(), *present_, until);
  }
  FreeTable returned = *free_;  // the plan ends before its last step begins
  returned.Add(*present_, 1);
  LookAt(returned.steps(), nothing_, until);
}

void SlotPlanner::LookAt(std::span<const GpuStep> table, const GpuPlan& present, TimePoint until) {
  SetBreaks(present);
  open_.resize(std::max(open_.size(), table.size() + breaks_.size()));
  OpenStep* next = open_.data();
  const Levels& levels = job_->levels;
  auto step = table.begin();
  int gpus = 0;
  int returned = 0;
  const auto open = [&](TimePoint from) { *next++ = {from, levels.Under(gpus + returned)}; };
  const auto pass = [&](TimePoint at) {
    for (; step != table.end() && step->from < at; ++step) {
      gpus = step->gpus;
      open(step->from);
    }
  };
  for (const GpuStep& own : breaks_) {
    pass(own.from);
    if (step != table.end() && step->from == own.from) {
      gpus = step->gpus;
      ++step;
    }
    returned = own.gpus;
    open(own.from);
    if (own.from == until) {
      count_ = static_cast<std::size_t>(next - open_.data());
      return;
    }
  }
  pass(kEndOfTime);
  count_ = static_cast<std::size_t>(next - open_.data());
}

// The breakpoints of the job itself, and what it gives back from there on.
void SlotPlanner::SetBreaks(const GpuPlan& present) {
  breaks_ = present.steps;
  if (!breaks_.empty()) {
    breaks_.push_back({present.end, 0});
  }
  const auto due = std::lower_bound(breaks_.begin(), breaks_.end(), due_,
                                    [](const GpuStep& own, TimePoint at) { return own.from < at; });
  if (due_ >= now_ && (due == breaks_.end() || due->from != due_)) {
    breaks_.insert(due, {due_, due == breaks_.begin() ? 0 : (due - 1)->gpus});
  }
}

// Whether no step follows. Those beyond the deadline are looked at only here.
bool SlotPlanner::IsLast(std::size_t i) {
  if (i + 1 == count_ && !whole_) {
    Look(kEndOfTime);
  }
  return i + 1 == count_;
}

// The end of an interval; one that touches the slot of the deadline ends with the deadline.
TimePoint SlotPlanner::Until(std::size_t i) const {
  const TimePoint next = open_[i + 1].from;
  return next == due_ ? job_->deadline : next;
}

// --------------------------------------------------------------------------------------- planning

void SlotPlanner::Plan(const SlotJob& job, const FreeTable& free, SlotPlan& plan) {
  Begin(job, nothing_, free, plan);
  first_ = 0;
  FillForward(LeastLevel());
  End();
}

void SlotPlanner::PlanFrom(int level, const SlotJob& job, const GpuPlan& present,
                           const FreeTable& free, SlotPlan& plan) {
  Begin(job, present, free, plan);
  if (!Force(level)) {
    first_ = 1;
    FillForward(LeastLevel());
  }
  End();
}

void SlotPlanner::Begin(const SlotJob& job, const GpuPlan& present, const FreeTable& free,
                        SlotPlan& plan) {
  job_ = &job;
  present_ = &present;
  free_ = &free;
  plan_ = &plan;
  due_ = DueOf(job);
  left_ = job.work_left;
  plan.plan.steps.clear();
  plan.seen_until = due_ < now_ ? kEndOfTime : TimePoint::min();
  Look(due_ < now_ ? kEndOfTime : due_);
}

void SlotPlanner::End() {
  plan_->in_time = plan_->real_end <= job_->deadline;
  plan_->level = job_->levels.Under(plan_->plan.steps.front().gpus);
}

// True: the job ends in the forced interval.
bool SlotPlanner::Force(int level) {
  const double rate = job_->levels.at(level).rate;
  plan_->plan.Append(now_, job_->levels.at(level).gpus);
  if (IsLast(0)) {
    See(kEndOfTime);
    EndAt(now_, rate);
    return true;
  }
  See(open_[1].from);
  const double work = rate * Seconds(Until(0) - now_);
  if (left_ <= work && now_ + CeilToSecond(left_ / rate) <= job_->deadline) {
    EndAt(now_, rate);
    return true;
  }
  left_ -= work;
  return false;
}

// The least level that suffices before the deadline; -1: none does.
int SlotPlanner::LeastLevel() {
  See(due_);
  end_ = count_;
  while (end_ > first_ && open_[end_ - 1].from >= due_) {
    --end_;
  }
  seconds_.resize(open_.size());
  double fastest = 0;  // so far
  for (int level = 0; level <= job_->levels.most(); ++level) {
    fastest = std::max(fastest, job_->levels.at(level).rate);
    // More than rounding can add to the work of all that is open.
    constexpr double kRounding = 1 + 1e-9;
    const bool hopeless = level > 0 && open_seconds_ * fastest * kRounding < left_;
    if (!hopeless && Suffices(level)) {
      return level;
    }
  }
  return -1;
}

// From the deadline backwards. Level 0, the first to be tried, measures the steps.
bool SlotPlanner::Suffices(int level) {
  const std::span<const Level> levels = job_->levels.all();
  const double left = left_;
  double done = 0;
  double seconds = 0;
  for (std::size_t i = end_; i-- > first_;) {
    const OpenStep& step = open_[i];
    if (level == 0) {
      seconds_[i] = Seconds((i + 1 == count_ ? job_->deadline : Until(i)) - step.from);
    }
    const int held = std::min(level, step.level);
    if (held < 0) {
      continue;
    }
    seconds += std::max(0.0, seconds_[i]);
    done += seconds_[i] * levels[static_cast<std::size_t>(held)].rate;
    if (done >= left) {
      turn_ = i;
      return true;
    }
  }
  open_seconds_ = seconds;  // the same on every level
  return false;
}

// The steps from `i` on whose length is known, the last one of all excepted. True: the job ends in
// one of them; otherwise `i` is the one to go on with.
bool SlotPlanner::FillKnown(int level, std::size_t& i) {
  const std::span<const Level> levels = job_->levels.all();
  const std::size_t known = std::min(end_, count_ - 1);
  GpuPlan& plan = plan_->plan;
  int gpus = plan.steps.empty() ? -1 : plan.steps.back().gpus;
  double left = left_;
  for (; i < known; ++i) {
    const OpenStep& step = open_[i];
    const int wanted = level < 0 ? job_->levels.most() : i < turn_ ? level - 1 : level;
    const int held = std::min(wanted, step.level);
    const Level level_held = held < 0 ? Level{} : levels[static_cast<std::size_t>(held)];
    if (level_held.gpus != gpus) {
      gpus = level_held.gpus;
      plan.Append(step.from, gpus);
    }
    if (held < 0) {
      continue;
    }
    const double work = level_held.rate * seconds_[i];
    if (left <= work) {
      left_ = left;
      See(open_[i + 1].from);
      EndAt(step.from, level_held.rate);
      return true;
    }
    left -= work;
  }
  left_ = left;
  return false;
}

void SlotPlanner::FillForward(int level) {
  std::size_t i = first_;
  if (level == 0 && i < turn_) {  // nothing until then
    plan_->plan.Append(open_[i].from, 0);
    i = turn_;
  }
  if (FillKnown(level, i)) {
    return;
  }
  for (;; ++i) {
    const bool last = IsLast(i);
    const OpenStep& step = open_[i];
    const int wanted = level < 0 ? job_->levels.most() : i < turn_ ? level - 1 : level;
    const int held = level < 0 && last ? wanted : std::min(wanted, step.level);
    plan_->plan.Append(step.from, job_->levels.gpus(held));
    if (held < 0) {
      continue;
    }
    const double rate = job_->levels.at(held).rate;
    if (last) {
      See(kEndOfTime);
      return EndAt(step.from, rate);
    }
    const double work = rate * Seconds(Until(i) - step.from);
    if (left_ <= work) {
      See(open_[i + 1].from);
      return EndAt(step.from, rate);
    }
    left_ -= work;
  }
}

void SlotPlanner::EndAt(TimePoint from, double rate) {
  const Duration length = CeilToSecond(left_ / rate);
  plan_->plan.end = SlotsAfter(from, length, slot_);
  plan_->real_end = from + length;
}

}  // namespace trainyard
