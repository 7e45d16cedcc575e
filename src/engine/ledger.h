// SPDX-License-Identifier: Apache-2.0
// The arithmetic of progress: how work accrues, how a restart cost is paid, when a job will end.
// Pure functions of a record, the rules and a time.
#pragma once

#include "model/job_record.h"
#include "model/rules.h"
#include "trainyard/snapshot.h"

namespace trainyard {

class Ledger {
 public:
  // `rates` must outlive the ledger.
  Ledger(const Rules& rules, const ExecutionModel& rates) : rules_(rules), rates_(rates) {}

  // The true instant is so many seconds before the one at which jobs are folded and predicted from
  // now on (Accrual::true_instants).
  void SetEarly(double seconds) { early_ = seconds; }

  // What follows from its specification alone.
  void Learn(JobRecord& job) const;
  // A job that arrived at `at`.
  void Open(JobRecord& job, TimePoint at) const;

  // Brings the progress up to `now`. REQUIRES: now >= as_of.
  void Fold(JobRecord& job, TimePoint now) const;

  // The grant of the job, or the jobs it shares GPUs with, are others from now on. The caller folds
  // first.
  void Run(JobRecord& job, const CoRunners& co_runners) const;

  // It holds nothing from now on. The caller folds first.
  void Stop(JobRecord& job) const;

  // A restart cost. It replaces an unpaid rest under Pay::kInterval, adds to the work under
  // Pay::kAtEnd and to the debt otherwise.
  void Charge(JobRecord& job, Duration cost) const;

  // Work that counts as done (Demand::credit).
  void Credit(JobRecord& job, Duration time) const;

  // Forgets what was not paid in the interval that ends now (Pay::kInterval).
  void ForgetDebt(JobRecord& job) const;

  // Predicts the end from now on; `charge_counts`: include the debt although the rules do not.
  void Predict(JobRecord& job, TimePoint now, bool charge_counts) const;

  // Takes back the work since the last multiple of `interval` of productive time of this attempt.
  void RollBack(JobRecord& job, Duration interval) const;

  // The view of a job at `now`, without changing it; and the work left alone, as in the view.
  [[nodiscard]] double WorkLeft(const JobRecord& job, TimePoint now) const;
  [[nodiscard]] JobView View(JobId id, const JobRecord& job, TimePoint now, bool with_work) const;

 private:
  void FoldProgress(Progress& progress, const Grant& grant, TimePoint now) const;
  [[nodiscard]] TimePoint RoundsToCome(const JobRecord& job, TimePoint now) const;
  [[nodiscard]] TimePoint Registered(const JobRecord& job, TimePoint from, TimePoint now) const;

  const Rules& rules_;
  const ExecutionModel& rates_;
  double early_ = 0;
};

}  // namespace trainyard
