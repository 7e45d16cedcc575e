// SPDX-License-Identifier: Apache-2.0
// What starts, restarts, resizes and migrations cost, and which jobs owe it (Debt). Fetching a data
// set is part of the cost.
#pragma once

#include <cstdint>
#include <set>
#include <tuple>

#include "engine/books/ledger.h"
#include "model/data_caches.h"
#include "model/job_records.h"
#include "model/rules.h"
#include "profile/measured_book.h"
#include "profile/overhead_model.h"
#include "trainyard/cluster.h"
#include "trainyard/snapshot.h"

namespace trainyard::engine {

class Charges final : public RestartCosts {
 public:
  // All but `overheads` must outlive it. `measured`: goes before `overheads`; may be null.
  Charges(const model::Rules& rules, const Cluster& cluster, const Ledger& ledger,
          profile::OverheadModel overheads, const profile::MeasuredBook* measured);

  // What the change would cost the job. Where the job will lie is not known, so that the longest
  // fetch of its data counts.
  [[nodiscard]] Duration Of(const JobSpec& job, Change change, int gpus) const override;

  // What starts of the job on the GPUs that it requests cost, where the rules count that.
  void Price(model::JobRecord& job) const;
  // The job has begun to run on a new grant: it owes the change.
  void Start(model::JobRecord& job, Change change, const model::JobRecords& jobs);
  // The grant ends, if there is one: what has not been waited for is not owed any more. REQUIRES:
  // progress is accrued.
  void Stop(model::JobRecord& job);
  // After so many decisions, this one not counted: charges the jobs that owe at every decision.
  void AtDecision(model::JobRecords& jobs, bool submits_to_come);

  // Decisions so far, by which the restarts of all jobs are counted.
  void CountDecisions(std::int64_t decisions) { decisions_ = decisions; }
  // Whether all jobs with GPUs are restarted at the next decision (PublishedRules::restart_every).
  [[nodiscard]] bool restarts_all() const {
    return rules_.published.restart_every > 0 && decisions_ > 0 &&
           decisions_ % rules_.published.restart_every == 0;
  }

  // The cost that the overhead model states, whatever has been measured.
  [[nodiscard]] Duration Stated(Change change, const JobSpec& job, int gpus, bool all) const;
  [[nodiscard]] model::DataCaches& data() { return data_; }
  void Serialize(StateStream& state) { state(data_, warm_sets_); }

 private:
  [[nodiscard]] bool Counts(Change change) const;
  [[nodiscard]] Duration Overhead(Change change, const JobSpec& job, int gpus, bool all) const;
  [[nodiscard]] Duration CostOf(const JobSpec& job, Change change, int gpus) const;
  template <typename Cost>
  [[nodiscard]] Duration CostOfGroup(const model::JobRecord& job, const model::JobRecords& jobs,
                                     Cost cost_of) const;
  void ChargeStarted(model::JobRecords& jobs) const;
  void ChargeRunning(model::JobRecords& jobs);
  [[nodiscard]] bool WarmsUp(const Grant& grant);

  const model::Rules& rules_;
  const Ledger& ledger_;
  const profile::OverheadModel overheads_;
  const profile::MeasuredBook* const measured_;
  const int all_gpus_;
  std::int64_t decisions_ = 0;
  model::DataCaches data_;
  std::set<std::tuple<NodeId, int, int>>
      warm_sets_;  // PublishedRules::warm_sets: first GPU and size
};

}  // namespace trainyard::engine
