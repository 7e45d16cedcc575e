// SPDX-License-Identifier: Apache-2.0
// The jobs as components see them: progress up to the present, without changing any record.
#pragma once

#include <span>

#include "engine/books/ledger.h"
#include "model/job_records.h"
#include "trainyard/cluster.h"
#include "trainyard/snapshot.h"

namespace trainyard::engine {

class JobViews final : public JobTable {
 public:
  // All must outlive it.
  JobViews(const Cluster& cluster, const model::JobRecords& jobs, const Ledger& ledger);

  // The present, and whether work that is left is of interest (Requires::work_left).
  void SetNow(TimePoint now) { now_ = now; }
  void SetWork(bool with_work) { with_work_ = with_work; }

  [[nodiscard]] std::span<const JobId> live() const override { return jobs_.live(); }
  [[nodiscard]] JobView at(JobId job) const override;
  [[nodiscard]] Brief brief(JobId job) const override {
    const model::JobRecord& record = jobs_[job];
    return {record.spec.get(), &record.grant, record.started};
  }
  [[nodiscard]] double work_left(JobId job) const override;

 private:
  const model::JobRecords& jobs_;
  const Ledger& ledger_;
  const int all_gpus_;
  const Resources capacity_;  // of all nodes
  TimePoint now_{};
  bool with_work_ = true;
};

}  // namespace trainyard::engine
