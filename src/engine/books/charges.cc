// SPDX-License-Identifier: Apache-2.0
#include "engine/books/charges.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

namespace trainyard::engine {
namespace {

// Null: the job states none.
const DataSet* DataOf(const JobSpec& job) {
  return job.traits && job.traits->data_set ? &*job.traits->data_set : nullptr;
}

}  // namespace

Charges::Charges(const model::Rules& rules, const Cluster& cluster, const Ledger& ledger,
                 profile::OverheadModel overheads, const profile::MeasuredBook* measured)
    : rules_(rules),
      ledger_(ledger),
      overheads_(std::move(overheads)),
      measured_(measured),
      all_gpus_(cluster.total_gpus()),
      data_(cluster) {}

bool Charges::Counts(Change change) const {
  const bool starts = change == Change::kStart || change == Change::kRestart;
  const model::Debt::Charge rule = rules_.debt.charge;
  return rule == model::Debt::Charge::kChange || (rule == model::Debt::Charge::kStart && starts);
}

// As measured, where it has been; otherwise as stated. Neither has the fetch of a data set in it.
Duration Charges::Overhead(Change change, const JobSpec& job, int gpus, bool all) const {
  if (measured_ != nullptr && !measured_->empty()) {
    if (const std::optional<Duration> cost = measured_->Cost(change, job.model, gpus)) {
      return *cost;
    }
  }
  return Stated(change, job, gpus, all);
}

Duration Charges::Stated(Change change, const JobSpec& job, int gpus, bool all) const {
  return overheads_.Cost(change, job, gpus, all_gpus_, all);
}

Duration Charges::CostOf(const JobSpec& job, Change change, int gpus) const {
  return Counts(change) ? Overhead(change, job, gpus, restarts_all()) : Duration{0};
}

Duration Charges::Of(const JobSpec& job, Change change, int gpus) const {
  const DataSet* const data = DataOf(job);
  return CostOf(job, change, gpus) +
         (data != nullptr && Counts(change) ? data_.LongestWait(*data) : Duration{0});
}

void Charges::Price(model::JobRecord& job) const {
  if (rules_.preemption.rule == model::Preemption::Rule::kSound) {
    job.start_cost = Of(*job.spec, Change::kStart, job.spec->gpus);
    job.restart_cost = Of(*job.spec, Change::kRestart, job.spec->gpus);
  }
}

// What the job owes if `cost_of` says what each member of its group costs.
template <typename Cost>
Duration Charges::CostOfGroup(const model::JobRecord& job, const model::JobRecords& jobs,
                              Cost cost_of) const {
  if (!rules_.published.group_sum || job.grant.group.empty()) {
    return cost_of(*job.spec);
  }
  Duration sum{0};
  for (const JobId member : job.grant.group) {
    sum += cost_of(*jobs[member].spec);
  }
  return sum;
}

void Charges::Start(model::JobRecord& job, Change change, const model::JobRecords& jobs) {
  if (const DataSet* const data = DataOf(*job.spec); data != nullptr) {
    const Duration wait = data_.Start(*data, job.grant.slices);
    job.fetch = Counts(change) ? wait : Duration{0};
  }
  const Duration cost =
      CostOfGroup(job, jobs,
                  [&](const JobSpec& spec) { return CostOf(spec, change, job.grant.gpus); }) +
      job.fetch;
  if (cost.count() > 0) {
    ledger_.Charge(job, cost);
  }
}

void Charges::Stop(model::JobRecord& job) {
  const DataSet* const data = DataOf(*job.spec);
  if (data != nullptr && job.grant.running) {
    data_.Stop(*data, job.grant.slices);
    job.progress.debt -= std::min(job.progress.debt, job.fetch);
    job.fetch = Duration{0};
  }
}

void Charges::AtDecision(model::JobRecords& jobs, bool submits_to_come) {
  const model::Debt::Charge rule = rules_.debt.charge;
  if (rule == model::Debt::Charge::kEveryArrival) {
    if (submits_to_come) {
      ChargeStarted(jobs);
    }
  } else if (rule == model::Debt::Charge::kEveryInstant || restarts_all()) {
    ChargeRunning(jobs);
  }
}

void Charges::ChargeStarted(model::JobRecords& jobs) const {
  for (const JobId id : jobs.live()) {
    if (model::JobRecord& job = jobs[id]; job.started) {
      ledger_.Charge(job, Overhead(Change::kRestart, *job.spec, job.spec->gpus, restarts_all()));
    }
  }
}

void Charges::ChargeRunning(model::JobRecords& jobs) {
  const bool restart = restarts_all();
  for (const JobId id : jobs.running()) {
    model::JobRecord& job = jobs[id];
    const bool warm = rules_.published.warm_sets && WarmsUp(job.grant);
    ledger_.Charge(job, CostOfGroup(job, jobs, [&](const JobSpec& spec) {
                     return warm ? overheads_.WarmCost(all_gpus_)
                                 : Overhead(Change::kRestart, spec, job.grant.gpus, restart);
                   }));
  }
  if (restart) {
    warm_sets_.clear();
  }
}

// Whether a job of that size has been there before; it has from now on.
bool Charges::WarmsUp(const Grant& grant) {
  const Slice& first = grant.slices.front();
  return !warm_sets_.emplace(first.node, std::countr_zero(first.gpus), grant.gpus).second;
}

}  // namespace trainyard::engine
