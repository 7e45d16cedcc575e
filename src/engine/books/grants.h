// SPDX-License-Identifier: Apache-2.0
// Gives jobs their GPUs and takes them: the job's record, the book of GPUs, progress and costs
// change together here and nowhere else.
#pragma once

#include <string>
#include <vector>

#include "engine/books/charges.h"
#include "engine/books/ledger.h"
#include "model/event.h"
#include "model/gpu_book.h"
#include "model/job_records.h"
#include "model/request/request_book.h"
#include "scheduler/bundle.h"
#include "scheduler/walk.h"
#include "trainyard/snapshot.h"

namespace trainyard::engine {

// Adds how fast the job runs and what it owes.
void AddRate(const model::JobRecord& job, model::Action& action);

class Grants {
 public:
  // `bundle`: whether GPUs may have several holders (May::share), and whether jobs are placed as
  // they ask. All but that must outlive it.
  Grants(const Cluster& cluster, const ExecutionModel& rates, const scheduler::Bundle& bundle,
         model::JobRecords& jobs, const Ledger& ledger, Charges& charges);

  // What is asked of the book before a grant: the GPUs that the job holds are free for others and
  // for itself; why the job may not hold these besides what is held (empty: it may); they are
  // taken.
  void Vacate(JobId job);
  [[nodiscard]] std::string Conflict(JobId job, const Grant& grant) const;
  void Occupy(JobId job, const Grant& grant);
  [[nodiscard]] int used_gpus() const { return book_.used(); }

  // The job holds the grant from now on; says what that is to it. REQUIRES: it was vacated and the
  // grant is occupied.
  [[nodiscard]] model::ActionKind Give(const scheduler::Placed& placed, TimePoint now);
  // The job holds nothing from now on, and waits.
  void Take(JobId job, TimePoint now);
  // The job has ended, with GPUs or without.
  void Release(JobId job);
  // The rate of a job that goes on with its grant, once its model, or that of a job that shares its
  // GPUs, says another one.
  void Renew(JobId job) const;
  // The others that run on GPUs of these jobs, ascending.
  [[nodiscard]] std::vector<JobId> SharersOf(std::vector<JobId> jobs) const;
  // The rates of jobs that are collocated, once all grants are given. O(running x GPUs).
  void SetRatesOfNeighbours(TimePoint now);

  // The jobs whose grants or rates have changed since ClearChanged.
  [[nodiscard]] const std::vector<JobId>& changed() const { return changed_; }
  void ClearChanged() { changed_.clear(); }

  // Fills an empty book from the jobs' records; false: they cannot all be true.
  [[nodiscard]] bool OccupyAll();

 private:
  [[nodiscard]] bool CountsRequest(JobId job, const Grant& grant) const;
  template <typename Use>
  auto WithCounted(JobId job, const Grant& grant, Use use) const;
  void SetRate(model::JobRecord& job) const;
  [[nodiscard]] std::vector<JobId> CollocatedWith(JobId job) const;
  [[nodiscard]] std::vector<const JobSpec*> SpecsOf(const std::vector<JobId>& jobs) const;

  const ExecutionModel& rates_;
  model::JobRecords& jobs_;
  const Ledger& ledger_;
  Charges& charges_;
  model::GpuBook book_;
  bool counts_requests_;
  model::RequestBook requests_;
  std::vector<JobId> changed_;
};

}  // namespace trainyard::engine
