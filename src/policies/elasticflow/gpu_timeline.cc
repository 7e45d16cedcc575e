// SPDX-License-Identifier: Apache-2.0
#include "policies/elasticflow/gpu_timeline.h"

#include <algorithm>

namespace trainyard::policies {

int GpuPlan::At(TimePoint at) const {
  if (at >= end) {
    return 0;
  }
  int gpus = 0;
  for (const GpuStep& step : steps) {
    if (step.from > at) {
      break;
    }
    gpus = step.gpus;
  }
  return gpus;
}

double GpuPlan::GpuSeconds(TimePoint from) const {
  double sum = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const TimePoint until = i + 1 < steps.size() ? steps[i + 1].from : end;
    if (until > from) {
      sum += steps[i].gpus * Seconds(until - std::max(from, steps[i].from));
    }
  }
  return sum;
}

void GpuPlan::CutBefore(TimePoint now) {
  std::size_t past = 0;
  while (past + 1 < steps.size() && steps[past + 1].from <= now) {
    ++past;
  }
  steps.erase(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(past));
  if (!steps.empty()) {
    steps.front().from = std::max(steps.front().from, now);
  }
}

void GpuTimeline::Add(const GpuPlan& plan, int sign) {
  if (plan.steps.empty() || plan.end <= from()) {
    return;
  }
  scratch_.clear();
  const auto append = [this](TimePoint from, int gpus) {
    if (scratch_.empty() || scratch_.back().gpus != gpus) {
      scratch_.push_back({from, gpus});
    }
  };
  std::size_t next = 0;  // step of the plan that comes next; its end after the last one
  int taken = 0;
  const auto change = [&] { return next < plan.steps.size() ? plan.steps[next].from : plan.end; };
  const auto advance = [&] {
    taken = next < plan.steps.size() ? plan.steps[next].gpus : 0;
    ++next;
  };
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const TimePoint stop = i + 1 < steps_.size() ? steps_[i + 1].from : kEndOfTime;
    while (next <= plan.steps.size() && change() <= steps_[i].from) {
      advance();
    }
    append(steps_[i].from, steps_[i].gpus + sign * taken);
    while (next <= plan.steps.size() && change() < stop) {
      const TimePoint at = change();
      advance();
      append(at, steps_[i].gpus + sign * taken);
    }
  }
  std::swap(steps_, scratch_);
}

}  // namespace trainyard::policies
