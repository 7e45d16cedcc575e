// SPDX-License-Identifier: Apache-2.0
// The arithmetic of progress: how work accrues, how a restart cost is paid, when a job will end.
// Pure functions of a record, the rules and a time.
#pragma once

#include "model/job_record.h"
#include "model/rules.h"
#include "trainyard/snapshot.h"

namespace trainyard::engine {

class Ledger {
 public:
  // `rates` must outlive the ledger.
  Ledger(const model::Rules& rules, const ExecutionModel& rates) : rules_(rules), rates_(rates) {}

  // The true instant is so many seconds before the one at which progress is accrued and ends are
  // predicted from now on (PublishedRules::true_instants).
  void SetEarly(double seconds) { early_ = seconds; }

  // Sets what follows from the job's specification alone.
  void Learn(model::JobRecord& job) const;
  // Another configuration states the work differently from `stated_before`: as large a part of it
  // is done. REQUIRES: progress is accrued.
  void Restate(model::JobRecord& job, double stated_before) const;
  // All of the job's work, in units of `rates`, as its specification states it.
  [[nodiscard]] double StatedWork(const model::JobRecord& job) const;
  // A job that arrived at `at`.
  void Open(model::JobRecord& job, TimePoint at) const;

  // Brings the progress up to `now`. REQUIRES: now >= as_of.
  void Accrue(model::JobRecord& job, TimePoint now) const;
  // What Accrue would make of the progress, without changing it. REQUIRES: now >= as_of.
  [[nodiscard]] model::Progress ProgressAt(const model::JobRecord& job, TimePoint now) const;

  // The same for a report, at any time: of a job that has ended, at its end.
  [[nodiscard]] model::Progress ProgressOf(const model::JobRecord& job, TimePoint at) const;

  // The job has another grant, or shares it with other jobs, from now on. REQUIRES: progress is
  // accrued.
  void Run(model::JobRecord& job, const CoRunners& co_runners) const;

  // The job holds nothing from now on. REQUIRES: progress is accrued.
  void Stop(model::JobRecord& job) const;

  // A restart cost. It replaces an unpaid rest under Pay::kInterval, adds to the work under
  // Pay::kAtEnd and to the debt otherwise.
  void Charge(model::JobRecord& job, Duration cost) const;

  // Work that counts as done (Demand::credit).
  void Credit(model::JobRecord& job, Duration time) const;

  // Forgets what was not paid in the interval that ends now (Pay::kInterval).
  void CancelDebt(model::JobRecord& job) const;

  // Predicts the end from now on; `charge_counts`: include the debt although the rules do not.
  void Predict(model::JobRecord& job, TimePoint now, bool charge_counts) const;

  // The job runs on though all of its work should be done: from now on it counts as twice as long,
  // as often as it takes to leave it some. `work_done`: how far it has really come; 0: unknown, as
  // far as it should have. REQUIRES: progress is accrued.
  void Extend(model::JobRecord& job, double work_done) const;
  // The job has really done so much work. REQUIRES: progress is accrued.
  void Correct(model::JobRecord& job, double work_done) const;
  // Whether the job counts as longer than it has stated.
  [[nodiscard]] bool IsExtended(const model::JobRecord& job) const;

  // Takes back the work since the last multiple of `interval` of productive time of this attempt.
  void RollBack(model::JobRecord& job, Duration interval) const;

  // The view of a job at `now`, without changing it; and the work left alone, as in the view.
  [[nodiscard]] double WorkLeft(const model::JobRecord& job, TimePoint now) const;
  [[nodiscard]] JobView View(JobId id, const model::JobRecord& job, TimePoint now,
                             bool with_work) const;

 private:
  void AccrueProgress(model::Progress& progress, const Grant& grant, TimePoint now) const;
  [[nodiscard]] TimePoint RoundsToCome(const model::JobRecord& job, TimePoint now) const;
  [[nodiscard]] TimePoint Registered(const model::JobRecord& job, TimePoint from,
                                     TimePoint now) const;

  const model::Rules& rules_;
  const ExecutionModel& rates_;
  double early_ = 0;
};

}  // namespace trainyard::engine
