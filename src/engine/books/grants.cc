// SPDX-License-Identifier: Apache-2.0
#include "engine/books/grants.h"

#include <algorithm>

#include "model/slices.h"

namespace trainyard::engine {

Grants::Grants(const Cluster& cluster, const ExecutionModel& rates, const scheduler::Bundle& bundle,
               model::JobRecords& jobs, const Ledger& ledger, Charges& charges)
    : rates_(rates),
      jobs_(jobs),
      ledger_(ledger),
      charges_(charges),
      book_(cluster, bundle.traits().may.share),
      counts_requests_(bundle.honours_requests()),
      requests_(cluster) {}

// Of a group that shares its GPUs, the first is for all.
bool Grants::CountsRequest(JobId job, const Grant& grant) const {
  return counts_requests_ && (grant.group.empty() || grant.group.front() == job);
}

// Of the slices that the job counts for. Collocated jobs ask for nothing beside GPUs; a GPU that
// they share counts once, as long as one of them is on it.
template <typename Use>
auto Grants::WithCounted(JobId job, const Grant& grant, Use use) const {
  return grant.sharing == Sharing::kCollocated ? use(book_.WithoutOthers(job, grant))
                                               : use(grant.slices);
}

void Grants::Vacate(JobId id) {
  const model::JobRecord& job = jobs_[id];
  book_.Disown(id, job.grant);
  if (CountsRequest(id, job.grant)) {
    WithCounted(id, job.grant, [&](const Slices& slices) { requests_.Remove(*job.spec, slices); });
  }
}

void Grants::Occupy(JobId id, const Grant& grant) {
  if (CountsRequest(id, grant)) {
    WithCounted(id, grant,
                [&](const Slices& slices) { requests_.Add(*jobs_.At(id).spec, slices); });
  }
  book_.Own(id, grant);
}

std::string Grants::Conflict(JobId id, const Grant& grant) const {
  std::string conflict = book_.Conflict(id, grant);
  if (conflict.empty() && CountsRequest(id, grant)) {
    conflict = WithCounted(id, grant, [&](const Slices& slices) {
      return requests_.WhyNot(*jobs_.At(id).spec, slices);
    });
    conflict = conflict.empty() ? conflict : "is given " + conflict;
  }
  return conflict;
}

bool Grants::OccupyAll() {
  const std::vector<JobId> running = jobs_.AllRunning();
  return std::all_of(running.begin(), running.end(), [this](JobId job) {
    const Grant& grant = jobs_.At(job).grant;
    const bool possible = grant.slices.empty() || book_.Conflict(job, grant).empty();
    if (possible) {
      Occupy(job, grant);
    }
    return possible;
  });
}

model::ActionKind Grants::Give(const scheduler::Placed& placed, TimePoint now) {
  const JobId id = placed.job;
  model::JobRecord& job = jobs_[id];
  const Grant& grant = placed.grant;
  ledger_.Accrue(job, now);
  changed_.push_back(id);
  if (!placed.restart && job.grant.holds() && scheduler::OnlyTuned(job.grant, grant)) {
    job.grant = grant;
    SetRate(job);
    return model::ActionKind::kTune;
  }
  model::ActionKind kind = model::ActionKind::kLaunch;
  Change change = job.started ? Change::kRestart : Change::kStart;
  if (!job.grant.holds()) {
    job.phase.To(model::JobPhase::kRunning);
    jobs_.Run(id);
  } else if (job.started) {
    const bool resized = job.grant.gpus != grant.gpus;
    // Who is to begin anew does so wherever it is.
    const bool moved = !placed.restart && !model::SameGpus(job.grant.slices, grant.slices);
    kind = resized ? model::ActionKind::kResize : model::ActionKind::kMigrate;
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
  model::JobRecord& job = jobs_[id];
  ledger_.Accrue(job, now);
  Vacate(id);
  charges_.Stop(job);
  job.grant.gpus = 0;
  job.grant.slices.clear();  // its storage is for the next grant
  job.grant.group.clear();
  job.grant.sharing = Sharing::kExclusive;
  job.grant.running = true;
  ledger_.Stop(job);
  job.phase.To(model::JobPhase::kWaiting);
  jobs_.Stop(id);
  changed_.push_back(id);
}

void Grants::Release(JobId id) {
  model::JobRecord& job = jobs_[id];
  if (job.grant.holds()) {
    Vacate(id);
    charges_.Stop(job);
    job.grant = {};
    jobs_.Stop(id);
  }
}

std::vector<const JobSpec*> Grants::SpecsOf(const std::vector<JobId>& jobs) const {
  std::vector<const JobSpec*> specs;
  specs.reserve(jobs.size());
  for (const JobId job : jobs) {
    specs.push_back(jobs_.At(job).spec.get());
  }
  return specs;
}

// That of its new grant. Collocated jobs learn of one another in SetRatesOfNeighbours.
void Grants::SetRate(model::JobRecord& job) const {
  if (job.grant.group.empty()) {
    return ledger_.Run(job, {});
  }
  const std::vector<const JobSpec*> group = SpecsOf(job.grant.group);
  ledger_.Run(job, {.group = group});
}

// The others that run on one of its GPUs, if it is collocated.
std::vector<JobId> Grants::CollocatedWith(JobId id) const {
  const Grant& grant = jobs_.At(id).grant;
  if (grant.sharing != Sharing::kCollocated || !grant.running) {
    return {};
  }
  std::vector<JobId> neighbours = book_.Neighbours(id, grant);
  std::erase_if(neighbours, [this](JobId other) { return !jobs_.At(other).grant.running; });
  return neighbours;
}

std::vector<JobId> Grants::SharersOf(std::vector<JobId> jobs) const {
  std::vector<JobId> sharers;
  for (const JobId job : jobs) {
    const std::vector<JobId>& group = jobs_.At(job).grant.group;
    const std::vector<JobId> collocated = CollocatedWith(job);
    sharers.insert(sharers.end(), group.begin(), group.end());
    sharers.insert(sharers.end(), collocated.begin(), collocated.end());
  }
  std::sort(jobs.begin(), jobs.end());
  std::sort(sharers.begin(), sharers.end());
  sharers.erase(std::unique(sharers.begin(), sharers.end()), sharers.end());
  std::erase_if(sharers,
                [&jobs](JobId job) { return std::binary_search(jobs.begin(), jobs.end(), job); });
  return sharers;
}

void Grants::Renew(JobId id) const {
  const std::vector<JobId> neighbours = CollocatedWith(id);
  if (neighbours.empty()) {
    return SetRate(jobs_[id]);
  }
  const std::vector<const JobSpec*> collocated = SpecsOf(neighbours);
  ledger_.Run(jobs_[id], {.collocated = collocated});
}

void Grants::SetRatesOfNeighbours(TimePoint now) {
  for (const JobId id : jobs_.running()) {
    model::JobRecord& job = jobs_[id];
    if (job.grant.sharing != Sharing::kCollocated || !job.grant.running) {
      continue;
    }
    const std::vector<const JobSpec*> collocated = SpecsOf(CollocatedWith(id));
    const CoRunners co_runners{.collocated = collocated};
    if (rates_.RateUnder(*job.spec, job.grant, co_runners) != job.progress.rate) {
      ledger_.Accrue(job, now);
      ledger_.Run(job, co_runners);
      changed_.push_back(id);
    }
  }
}

void AddRate(const model::JobRecord& job, model::Action& action) {
  action.rate = job.progress.rate;
  action.debt = job.progress.debt;
  action.fetch = std::min(job.fetch, job.progress.debt);
  action.work = job.total_work;
}

}  // namespace trainyard::engine
