// SPDX-License-Identifier: Apache-2.0
// When the engine decides next: after facts that are not decided yet, and when the scheduler asked
// to be woken.
#pragma once

#include <optional>

#include "engine/books/ends.h"
#include "engine/instant_clock.h"
#include "model/job_fields.h"
#include "model/job_records.h"
#include "model/rules.h"

namespace trainyard::engine {

class Instants {
 public:
  explicit Instants(const model::Rules& rules) : rules_(rules), clock_(rules.clock) {}

  // Something happened at `at` that calls for a decision.
  void AddFact(TimePoint at);
  // To this job. Of jobs without GPUs the policy does not know: they are decided about by
  // themselves, at once.
  void AddFactOf(const model::JobRecords& jobs, JobId job, TimePoint at) {
    if (jobs.IsCpuJob(job)) {
      cpu_jobs_are_due_ = true;
      if (!model::IsNoRequeue(*jobs[job].spec)) {
        return;
      }
    }
    AddFact(at);
  }
  void AddSubmit(TimePoint at);
  void NoMoreSubmits() { submits_to_come_ = false; }
  [[nodiscard]] bool submits_to_come() const { return submits_to_come_; }
  // When to decide if nothing happens.
  void WakeAt(std::optional<TimePoint> at) { wake_at_ = at; }
  // A decision was taken: no fact is left.
  void Decided(TimePoint now);

  // Whether something has happened in the step at hand for which jobs without GPUs are to be
  // decided about. It does not outlast the step, or a replay of the steps could differ: what is
  // left over while the engine is paused is decided with the fact that ends the pause.
  void BeginStep() { cpu_jobs_are_due_ = false; }
  [[nodiscard]] bool cpu_jobs_are_due() const { return cpu_jobs_are_due_; }

  // The next instant at which to decide, as far as it is known.
  [[nodiscard]] std::optional<TimePoint> Next(const model::JobRecords& jobs,
                                              const Ends& ends) const;
  // When the GPUs of a job that ends at `logged` come back. REQUIRES: there is an end.
  [[nodiscard]] TimePoint ReleaseOf(TimePoint logged, const model::JobRecords& jobs,
                                    const Ends& ends) const;

  void Serialize(StateStream& state) {
    state(first_fact_, last_fact_, wake_at_, submits_to_come_, clock_);
  }

 private:
  [[nodiscard]] bool SubmitIsLone(const model::JobRecords& jobs, const Ends& ends) const;
  [[nodiscard]] bool EndIsLone(const model::JobRecords& jobs, const Ends& ends) const;

  const model::Rules& rules_;
  InstantClock clock_;
  std::optional<TimePoint> first_fact_;  // of the facts since the last decision
  std::optional<TimePoint> last_fact_;
  std::optional<TimePoint> wake_at_;
  bool submits_to_come_ = true;
  bool cpu_jobs_are_due_ = false;  // of the step at hand
};

}  // namespace trainyard::engine
