// SPDX-License-Identifier: Apache-2.0
// For tests: jobs made by hand in the queues of a policy with a memory (Tiresias).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "support/hand_made_jobs.h"

namespace trainyard {

// Jobs under one ordering, told what the engine would tell it.
class Queues {
 public:
  explicit Queues(std::unique_ptr<Ordering> ordering)
      : ordering_(std::move(ordering)), memory_(ordering_->NewMemory()) {}
  explicit Queues(const std::string& policy, const ComponentContext& context = {})
      : Queues(OrderingNamed(policy, context)) {}

  JobView& Arrive(int gpus, double at = 0) {
    JobView& job = jobs_.Add({.name = "job", .gpus = gpus, .submit = AtSeconds(at)});
    Notify(JobEvent::kArrived, job, at);
    return job;
  }
  // The job has GPUs, or none, from `at` on.
  void Settle(JobView& job, bool runs, double at) {
    jobs_.Hold(job, runs ? job.spec->gpus : 0);
    Notify(JobEvent::kSettled, job, at);
  }
  void Due(JobView& job, double at) { Notify(JobEvent::kDue, job, at); }

  [[nodiscard]] Key KeyOf(const JobView& job) const {
    return ordering_->StandingOf(job, {}, memory_.get()).key;
  }
  // The queue of the job, 0 to the number of thresholds.
  [[nodiscard]] double QueueOf(const JobView& job) const { return KeyOf(job)[0]; }
  [[nodiscard]] std::optional<double> NextMove(const JobView& job, double now) const {
    return InSeconds(ordering_->StandingOf(job, AtSeconds(now), memory_.get()).moves_at);
  }
  [[nodiscard]] std::optional<double> NextWake(double now) const {
    const Snapshot snapshot{.now = AtSeconds(now), .jobs = &jobs_};
    return InSeconds(ordering_->NextWake(snapshot, memory_.get()));
  }
  [[nodiscard]] const Ordering& ordering() const { return *ordering_; }
  [[nodiscard]] std::unique_ptr<Memory> CopyOfMemory() const {
    return CopyOf(*memory_, *ordering_);
  }

 private:
  static std::optional<double> InSeconds(std::optional<TimePoint> time) {
    return time ? std::optional<double>(Seconds(*time)) : std::nullopt;
  }
  void Notify(JobEvent event, const JobView& job, double at) {
    ordering_->Notify(event, job, AtSeconds(at), memory_.get());
  }

  std::unique_ptr<Ordering> ordering_;
  std::unique_ptr<Memory> memory_;
  HandMadeJobs jobs_;
};

// A running job that has had `run_time` seconds of GPUs since 0.
inline JobView& Running(Queues& queues, int gpus, double run_time) {
  JobView& job = queues.Arrive(gpus);
  queues.Settle(job, true, 0);
  job.run_time = FromSeconds(run_time);
  job.productive_time = job.run_time;
  return job;
}

// A job of one GPU that was demoted at 100 s and stopped then.
inline JobView& Demoted(Queues& queues) {
  JobView& job = Running(queues, 1, 100);
  queues.Due(job, 100);
  queues.Settle(job, false, 100);
  return job;
}

}  // namespace trainyard
