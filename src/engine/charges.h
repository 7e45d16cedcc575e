// SPDX-License-Identifier: Apache-2.0
// What starts, restarts, resizes and migrations cost, and which jobs owe it (Debt). Fetching a data
// set is part of the cost.
#pragma once

#include <cstdint>
#include <set>
#include <tuple>

#include "engine/ledger.h"
#include "model/data_caches.h"
#include "model/job_records.h"
#include "model/rules.h"
#include "profile/overhead_model.h"
#include "trainyard/cluster.h"
#include "trainyard/snapshot.h"

namespace trainyard {

class Charges final : public RestartCosts {
 public:
  // All but `overheads` must outlive it.
  Charges(const Rules& rules, const Cluster& cluster, const Ledger& ledger,
          OverheadModel overheads);

  // What the change would cost the job. Where the job will lie is not known, so that the longest
  // fetch of its data counts.
  [[nodiscard]] Duration Of(const JobSpec& job, Change change, int gpus) const override;

  // What starts of the job on the GPUs that it requests cost, where the rules count that.
  void Price(JobRecord& job) const;
  // The job has begun to run on a new grant: it owes the change.
  void Start(JobRecord& job, Change change, const JobRecords& jobs);
  // The grant ends, if there is one: what has not been waited for is not owed any more. REQUIRES:
  // progress is accrued.
  void Stop(JobRecord& job);
  // After so many decisions, this one not counted: charges the jobs that owe at every decision.
  void AtDecision(JobRecords& jobs, bool submits_to_come);

  // Decisions so far, by which the restarts of all jobs are counted.
  void CountDecisions(std::int64_t decisions) { decisions_ = decisions; }
  // Whether all jobs with GPUs are restarted at the next decision (PublishedRules::restart_every).
  [[nodiscard]] bool restarts_all() const {
    return rules_.published.restart_every > 0 && decisions_ > 0 &&
           decisions_ % rules_.published.restart_every == 0;
  }

  [[nodiscard]] const OverheadModel& overheads() const { return overheads_; }
  [[nodiscard]] DataCaches& data() { return data_; }
  void Serialize(StateStream& state) { state(data_, warm_sets_); }

 private:
  [[nodiscard]] bool Counts(Change change) const;
  [[nodiscard]] Duration CostOf(const JobSpec& job, Change change, int gpus) const;
  template <typename Cost>
  [[nodiscard]] Duration CostOfGroup(const JobRecord& job, const JobRecords& jobs,
                                     Cost cost_of) const;
  void ChargeStarted(JobRecords& jobs) const;
  void ChargeRunning(JobRecords& jobs);
  [[nodiscard]] bool WarmsUp(const Grant& grant);

  const Rules& rules_;
  const Ledger& ledger_;
  const OverheadModel overheads_;
  const int all_gpus_;
  std::int64_t decisions_ = 0;
  DataCaches data_;
  std::set<std::tuple<NodeId, int, int>>
      warm_sets_;  // PublishedRules::warm_sets: first GPU and size
};

}  // namespace trainyard
