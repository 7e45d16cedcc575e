// SPDX-License-Identifier: Apache-2.0
#include "loader/reallocation.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace trainyard::loader {
namespace {

using Kind = LoaderCommand::Kind;

LoaderCommand CommandOf(Kind kind, JobId id, const LoaderQueues& queues) {
  const LoaderQueues::Job& job = queues.jobs.at(id);
  return {.kind = kind,
          .job = id,
          .workers = job.workers,
          .restarts = job.restarts,
          .from_checkpoint = job.from_checkpoint};
}

void Append(std::span<const JobId> jobs, std::vector<JobId>& queue) {
  queue.insert(queue.end(), jobs.begin(), jobs.end());
}

// Those whose number changes.
std::set<JobId> Divide(const DivideWorkers& divide, LoaderQueues& queues) {
  std::vector<JobId> jobs = queues.running;
  Append(queues.paused, jobs);
  Append(queues.ready, jobs);
  const std::vector<int> workers = divide(queues, jobs);
  CHECK(workers.size() == jobs.size());
  std::set<JobId> changed;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (std::exchange(queues.jobs.at(jobs[i]).workers, workers[i]) != workers[i]) {
      changed.insert(jobs[i]);
    }
  }
  return changed;
}

// As published: the list is gone through while it is edited, so that of three jobs the order
// becomes 1, 0, 2.
void MoveChangedBack(const std::set<JobId>& changed, std::vector<JobId>& ready) {
  for (std::size_t i = 0; i < ready.size(); ++i) {
    if (changed.contains(ready[i])) {
      const auto place = ready.begin() + static_cast<std::ptrdiff_t>(i);
      std::rotate(place, place + 1, ready.end());
    }
  }
}

void TellToPause(const std::set<JobId>& changed, LoaderStep& step) {
  for (const JobId job : step.queues.running) {
    if (changed.contains(job) && step.queues.told.insert(job).second) {
      step.commands.push_back(CommandOf(Kind::kPause, job, step.queues));
      step.queues.pausing = true;
    }
  }
}

// Launches all that wait for it, unless somebody is still to be waited for.
void Resume(LoaderStep& step) {
  LoaderQueues& queues = step.queues;
  if (!queues.told.empty() || (queues.ready.empty() && queues.paused.empty())) {
    return;
  }
  queues.ready.insert(queues.ready.end(), queues.paused.rbegin(), queues.paused.rend());
  queues.paused.clear();
  for (const JobId job : queues.ready) {
    step.commands.push_back(CommandOf(Kind::kLaunch, job, queues));
  }
  Append(queues.ready, queues.running);
  queues.ready.clear();
  queues.pausing = false;
}

}  // namespace

LoaderStep Reallocation::Arrive(LoaderQueues queues, std::span<const LoaderArrival> batch) const {
  LoaderStep step{.queues = std::move(queues)};
  for (const LoaderArrival& arrival : batch) {
    CHECK(step.queues.jobs.emplace(arrival.job, LoaderQueues::Job{.workers = arrival.workers})
              .second);
    step.queues.ready.push_back(arrival.job);
  }
  if (mode_ != ReallocationMode::kNever) {
    const std::set<JobId> changed = Divide(divide_, step.queues);
    MoveChangedBack(changed, step.queues.ready);
    TellToPause(changed, step);
  }
  Resume(step);
  return step;
}

LoaderStep Reallocation::Paused(LoaderQueues queues, JobId job) const {
  LoaderStep step{.queues = std::move(queues)};
  if (step.queues.told.erase(job) == 0) {
    return step;
  }
  std::erase(step.queues.running, job);
  step.queues.paused.push_back(job);
  LoaderQueues::Job& paused = step.queues.jobs.at(job);
  paused.from_checkpoint = true;
  ++paused.restarts;
  Resume(step);
  return step;
}

LoaderStep Reallocation::Finish(LoaderQueues queues, std::span<const JobId> jobs) const {
  LoaderStep step{.queues = std::move(queues)};
  for (const JobId job : jobs) {
    for (std::vector<JobId>* queue :
         {&step.queues.ready, &step.queues.running, &step.queues.paused}) {
      std::erase(*queue, job);
    }
    step.queues.told.erase(job);
    step.queues.finished.push_back(job);
  }
  if (mode_ == ReallocationMode::kAlways) {
    step.queues.pausing = true;
    TellToPause(Divide(divide_, step.queues), step);
  }
  Resume(step);
  return step;
}

TimePoint HandoverOf(TimePoint arrival, Duration window) {
  const Duration since = arrival.time_since_epoch();
  if (window <= Duration{0} || since <= Duration{0}) {
    return arrival;
  }
  const auto windows = (since + window - Duration{1}) / window - 1;  // those before its own
  return TimePoint{windows * window};
}

}  // namespace trainyard::loader
