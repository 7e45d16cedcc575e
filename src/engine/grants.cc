// SPDX-License-Identifier: Apache-2.0
#include "engine/grants.h"

#include <algorithm>

#include "model/slices.h"

namespace trainyard {

Grants::Grants(const Cluster& cluster, const ExecutionModel& rates, bool shared, JobRecords& jobs,
               const Ledger& ledger, Charges& charges)
    : rates_(rates), jobs_(jobs), ledger_(ledger), charges_(charges), book_(cluster, shared) {}

void Grants::OccupyAll() {
  for (const JobId job : jobs_.running()) {
    book_.Own(job, jobs_[job].grant);
  }
}

ActionKind Grants::Give(const Placed& placed, TimePoint now) {
  const JobId id = placed.job;
  JobRecord& job = jobs_[id];
  const Grant& grant = placed.grant;
  ledger_.Fold(job, now);
  changed_.push_back(id);
  if (!placed.restart && job.grant.gpus > 0 && OnlyTuned(job.grant, grant)) {
    job.grant = grant;
    SetRate(job);
    return ActionKind::kTune;
  }
  ActionKind kind = ActionKind::kLaunch;
  Change change = job.started ? Change::kRestart : Change::kStart;
  if (job.grant.gpus == 0) {
    job.phase.To(JobPhase::kRunning);
    jobs_.Run(id);
  } else if (job.started) {
    const bool resized = job.grant.gpus != grant.gpus;
    const bool moved = !SameGpus(job.grant.slices, grant.slices);
    kind = resized ? ActionKind::kResize : ActionKind::kMigrate;
    change = resized ? Change::kResize : moved ? Change::kMigrate : Change::kRestart;
    ++(resized ? job.resizes : moved ? job.migrations : job.preemptions);
  }
  charges_.Stop(job);
  job.grant = grant;
  job.productive_before_attempt = job.progress.productive_time;
  SetRate(job);
  if (grant.running) {
    jobs_.Start(id, now);
    charges_.Start(job, change, jobs_);
    ledger_.Credit(job, placed.credit);
  }
  return kind;
}

void Grants::Take(JobId id, TimePoint now) {
  JobRecord& job = jobs_[id];
  ledger_.Fold(job, now);
  book_.Disown(id, job.grant);
  charges_.Stop(job);
  job.grant.gpus = 0;
  job.grant.slices.clear();  // its storage is for the next grant
  job.grant.group.clear();
  job.grant.sharing = Sharing::kExclusive;
  job.grant.running = true;
  ledger_.Stop(job);
  job.phase.To(JobPhase::kWaiting);
  jobs_.Stop(id);
  changed_.push_back(id);
}

void Grants::Release(JobId id) {
  JobRecord& job = jobs_[id];
  if (job.grant.gpus > 0) {
    book_.Disown(id, job.grant);
    charges_.Stop(job);
    job.grant = {};
    jobs_.Stop(id);
  }
}

std::vector<const JobSpec*> Grants::SpecsOf(const std::vector<JobId>& jobs) const {
  std::vector<const JobSpec*> specs;
  specs.reserve(jobs.size());
  for (const JobId job : jobs) {
    specs.push_back(jobs_[job].spec.get());
  }
  return specs;
}

// That of its new grant. Collocated jobs learn of one another in SetRatesOfNeighbours.
void Grants::SetRate(JobRecord& job) const {
  if (job.grant.group.empty()) {
    return ledger_.Run(job, {});
  }
  const std::vector<const JobSpec*> group = SpecsOf(job.grant.group);
  ledger_.Run(job, {.group = group});
}

void Grants::SetRatesOfNeighbours(TimePoint now) {
  for (const JobId id : jobs_.running()) {
    JobRecord& job = jobs_[id];
    if (job.grant.sharing != Sharing::kCollocated || !job.grant.running) {
      continue;
    }
    std::vector<JobId> neighbours = book_.Neighbours(id, job.grant);
    std::erase_if(neighbours, [this](JobId other) { return !jobs_[other].grant.running; });
    const std::vector<const JobSpec*> collocated = SpecsOf(neighbours);
    const CoRunners co_runners{.collocated = collocated};
    if (rates_.RateUnder(*job.spec, job.grant, co_runners) != job.progress.rate) {
      ledger_.Fold(job, now);
      ledger_.Run(job, co_runners);
      changed_.push_back(id);
    }
  }
}

}  // namespace trainyard
