// SPDX-License-Identifier: Apache-2.0
#include "originals/slot_planner.h"

#include <algorithm>
#include <span>

#include "base/rounding.h"

namespace trainyard::originals {
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

double SlotPlan::GpuTime() const {
  return plan.GpuSeconds(plan.steps.front().from) +
         plan.steps.back().gpus * Seconds(counted_until - plan.end);
}

// ----------------------------------------------------------------------------------- what is open

// Sets the open steps up to `due_`. But for that one, there is none where nothing changes.
void SlotPlanner::Look(std::span<const policies::GpuStep> table, const policies::GpuPlan& present) {
  const Levels& levels = job_->levels;
  open_.resize(std::max(open_.size(), table.size() + present.steps.size() + 2));
  OpenStep* next = open_.data();
  const auto open = [&](TimePoint from, int gpus) { *next++ = {from, levels.Under(gpus)}; };
  auto step = table.begin();
  int gpus = 0;
  int returned = 0;
  int total = -1;
  // All of the table before `at`.
  const auto pass = [&](TimePoint at) {
    for (; step != table.end() && step->from < at; ++step) {
      gpus = step->gpus;
      if (gpus + returned != total) {
        total = gpus + returned;
        open(step->from, total);
      }
    }
  };
  const auto give_back = [&](TimePoint at, int own) {
    pass(at);
    if (step != table.end() && step->from == at) {
      gpus = step->gpus;
      ++step;
    }
    returned = own;
    if (gpus + returned != total) {
      total = gpus + returned;
      open(at, total);
    }
  };
  for (const policies::GpuStep& own : present.steps) {
    if (own.from >= due_) {
      break;
    }
    give_back(own.from, own.gpus);
  }
  if (!present.steps.empty() && present.end < due_) {
    give_back(present.end, 0);
  }
  pass(due_);
  gpus = step != table.end() && step->from == due_ ? step->gpus : gpus;
  open(due_, gpus + present.At(due_));
  end_ = static_cast<std::size_t>(next - open_.data()) - 1;
}

// --------------------------------------------------------------------------------------- planning

void SlotPlanner::Plan(const SlotJob& job, const policies::GpuTimeline& free, SlotPlan& plan) {
  static const policies::GpuPlan kNothing;
  Begin(job, kNothing, free, plan);
  first_ = 0;
  if (const int level = LeastLevel(); level >= 0) {
    Fill(level);
  } else {
    FillLate(free);
  }
  End();
}

void SlotPlanner::PlanFrom(int level, const SlotJob& job, const policies::GpuPlan& present,
                           const policies::GpuTimeline& free, SlotPlan& plan) {
  Begin(job, present, free, plan);
  const double rate = Hold(now_, level)->rate;
  EndAligned(now_, rate);
  if (due_ > now_) {
    const TimePoint until = open_[1].from;
    if (plan.plan.end <= until && plan.real_end <= job.deadline) {
      plan.seen_before = plan.plan.end;
      return End();
    }
    left_ -= rate * Seconds(until - now_);
    first_ = 1;
    const int least = left_ > 0 ? LeastLevel() : -1;
    if (least >= 0) {
      Fill(least);
    }
  }
  End();
}

void SlotPlanner::Begin(const SlotJob& job, const policies::GpuPlan& present,
                        const policies::GpuTimeline& free, SlotPlan& plan) {
  job_ = &job;
  plan_ = &plan;
  due_ = SlotsAfter(now_, job.deadline - now_, slot_);
  left_ = job.work_left;
  plan.plan.steps.clear();
  plan.seen_before = due_;
  end_ = 0;
  if (due_ >= now_) {
    Look(free.steps(), present);
  }
}

void SlotPlanner::End() {
  plan_->in_time = plan_->real_end <= job_->deadline;
  plan_->level = job_->levels.Under(plan_->plan.steps.front().gpus);
}

// The least level that suffices before the deadline; -1: none does.
int SlotPlanner::LeastLevel() {
  seconds_.resize(std::max(seconds_.size(), end_));
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
      seconds_[i] = Seconds((i + 1 == end_ ? job_->deadline : open_[i + 1].from) - step.from);
    }
    const int held = std::min(level, step.level);
    if (held < 0) {
      continue;
    }
    seconds += seconds_[i];
    done += seconds_[i] * levels[static_cast<std::size_t>(held)].rate;
    if (done >= left) {
      turn_ = i;
      return true;
    }
  }
  open_seconds_ = seconds;  // the same on every level
  return false;
}

// Before `turn_` on the level below.
void SlotPlanner::Fill(int level) {
  std::size_t i = first_;
  if (level == 0 && i < turn_) {  // nothing until then
    (void)Hold(open_[i].from, -1);
    i = turn_;
  }
  for (; i < end_; ++i) {
    const OpenStep& step = open_[i];
    const Level* const held = Hold(step.from, std::min(i < turn_ ? level - 1 : level, step.level));
    if (held == nullptr) {
      continue;
    }
    const double work = seconds_[i] * held->rate;
    if (i >= turn_ && work >= left_) {
      EndInSlots(step.from, held->rate);
      if (i + 1 < end_) {
        plan_->counted_until = open_[i + 1].from;
      }
      return;
    }
    left_ -= work;
  }
  // The sums of the two directions differ by their rounding.
  const int held = std::max(0, std::min(level, open_[end_].level));
  EndInSlots(due_, Hold(due_, held)->rate);
}

// A job that will be late: all that there is, as long as it takes.
void SlotPlanner::FillLate(const policies::GpuTimeline& free) {
  for (std::size_t i = 0; i < end_; ++i) {
    if (const Level* const held = Hold(open_[i].from, open_[i].level)) {
      left_ -= seconds_[i] * held->rate;
    }
  }
  const TimePoint from = std::max(due_, now_);
  const std::span<const policies::GpuStep> steps = free.steps();
  auto next =
      std::upper_bound(steps.begin(), steps.end(), from,
                       [](TimePoint at, const policies::GpuStep& step) { return at < step.from; });
  for (TimePoint at = from;; at = (next++)->from) {
    const bool last = next == steps.end();
    const int level = last ? job_->levels.most() : job_->levels.Under((next - 1)->gpus);
    const Level* const held = Hold(at, level);
    const double work = last || held == nullptr ? 0 : Seconds(next->from - at) * held->rate;
    if (held != nullptr && (last || work >= left_)) {
      return EndAligned(at, held->rate);
    }
    if (last) {  // no GPU is up on which it could run
      plan_->plan.end = plan_->real_end = plan_->counted_until = kEndOfTime;
      return;
    }
    left_ -= work;
  }
}

// Null: nothing from then on.
const Level* SlotPlanner::Hold(TimePoint from, int level) {
  if (level < 0) {
    plan_->plan.Append(from, 0);
    return nullptr;
  }
  const Level& held = job_->levels.at(level);
  plan_->plan.Append(from, held.gpus);
  return &held;
}

// In whole seconds and slots after `from`.
void SlotPlanner::EndInSlots(TimePoint from, double rate) {
  const Duration length = base::CeilToSecond(left_ / rate);
  plan_->real_end = from + length;
  plan_->plan.end = SlotsAfter(from, length, slot_);
  plan_->counted_until = plan_->plan.end;
}

// At a whole second, and in slots after now.
void SlotPlanner::EndAligned(TimePoint from, double rate) {
  plan_->real_end = AtSeconds(std::ceil(Seconds(from) + left_ / rate));
  plan_->plan.end = SlotsAfter(now_, plan_->real_end - now_, slot_);
  plan_->counted_until = plan_->plan.end;
}

}  // namespace trainyard::originals
