// SPDX-License-Identifier: Apache-2.0
#include "live/live_metrics.h"

#include <cmath>

#include "base/earlier.h"
#include "base/metric_name.h"
#include "trainyard/metric.h"

namespace trainyard {

void LiveMetrics::Hear(JobId id, const v1::AttemptReport& report) {
  for (const v1::Metric& metric : report.metrics()) {
    if (!IsMetricName(metric.name()) || !std::isfinite(metric.value())) {
      continue;
    }
    OfJob& job = jobs_[id];
    const auto told = job.told.find(metric.name());
    if (told != job.told.end() && told->second == metric.value()) {
      job.untold.erase(metric.name());
    } else if (told != job.told.end() || job.told.size() + job.untold.size() < kMaxMetrics ||
               job.untold.contains(metric.name())) {
      job.untold[metric.name()] = metric.value();
    }
    if (job.untold.empty()) {
      untold_.erase(id);
    } else {
      untold_.insert(id);
    }
  }
}

void LiveMetrics::Note(const Event& event) {
  OfJob& job = jobs_[event.job];
  for (const Metric& metric : event.metrics) {
    job.told[metric.name] = metric.value;
  }
  job.untold.clear();
  job.tell_from = event.at + pause_;
  untold_.erase(event.job);
}

void LiveMetrics::Drop(JobId job) {
  jobs_.erase(job);
  untold_.erase(job);
}

std::optional<Event> LiveMetrics::Untold(JobId id, TimePoint now) const {
  if (!untold_.contains(id)) {
    return std::nullopt;
  }
  Event event{.kind = EventKind::kReported, .at = now, .job = id};
  for (const auto& [name, value] : jobs_.at(id).untold) {
    event.metrics.push_back({.name = name, .value = value});
  }
  return event;
}

std::vector<JobId> LiveMetrics::Due(TimePoint now) const {
  std::vector<JobId> due;
  for (const JobId job : untold_) {
    if (jobs_.at(job).tell_from <= now) {
      due.push_back(job);
    }
  }
  return due;
}

std::optional<TimePoint> LiveMetrics::next_timer() const {
  std::optional<TimePoint> next;
  for (const JobId job : untold_) {
    next = Earlier(next, std::optional(jobs_.at(job).tell_from));
  }
  return next;
}

void LiveMetrics::SerializeJob(JobId id, StateStream& state) {
  const auto at = jobs_.find(id);
  OfJob job = at == jobs_.end() ? OfJob{} : at->second;
  state(job);
  if (state.reading() && !(job.told.empty() && job.untold.empty())) {
    if (!job.untold.empty()) {
      untold_.insert(id);
    }
    jobs_[id] = std::move(job);
  }
}

}  // namespace trainyard
