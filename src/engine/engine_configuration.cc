// SPDX-License-Identifier: Apache-2.0
// How an engine takes another configuration: jobs and nodes stay, and every part that follows from
// the configuration is made anew of them.
#include <algorithm>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/try.h"
#include "engine/engine.h"
#include "engine/no_requeue.h"
#include "model/job_fields.h"
#include "model/node_classes.h"
#include "model/request/request_book.h"
#include "model/resource_amounts.h"
#include "model/slices.h"
#include "profile/execution_model.h"

namespace trainyard::engine {
namespace {

// Which of the grants of before can be held under a configuration, asked job by job: those asked
// about first have a place first.
class Keeping {
 public:
  Keeping(const Cluster& before, const Configuration& next)
      : before_(before), next_(next), left_(next.cluster.nodes.size()), requests_(next.cluster) {
    for (std::size_t i = 0; i < left_.size(); ++i) {
      left_[i] = next.cluster.nodes[i].capacity;
    }
  }

  [[nodiscard]] bool Keeps(const JobSpec& job, const Grant& grant) {
    const bool is_shared = grant.sharing != Sharing::kExclusive || !grant.group.empty();
    if (grant.slices.empty() == next_.bundle.names_gpus() ||
        (is_shared && !next_.bundle.traits().may.share) ||
        !std::all_of(grant.slices.begin(), grant.slices.end(),
                     [this](const Slice& slice) { return Fits(slice); }) ||
        (!is_shared && next_.bundle.honours_requests() && !requests_.Fits(job, grant.slices))) {
      return false;
    }
    if (!is_shared) {
      requests_.Add(job, grant.slices);
    }
    for (const Slice& slice : grant.slices) {
      left_[Index(slice.node)] -= slice.soft;
    }
    return true;
  }

 private:
  [[nodiscard]] bool Fits(const Slice& slice) const {
    const std::size_t node = Index(slice.node);
    return HasSameGpus(before_.nodes[node], next_.cluster.nodes[node]) &&
           model::HasRoom(next_.cluster.nodes[node], left_[node], slice.soft);
  }

  const Cluster& before_;
  const Configuration& next_;
  std::vector<Resources> left_;  // by node
  model::RequestBook requests_;
};

// Those that are not over: live, held back or finishing, not judged yet, and deferred.
std::vector<JobId> JobsToCome(const model::JobRecords& jobs) {
  std::vector<JobId> all(jobs.live().begin(), jobs.live().end());
  all.insert(all.end(), jobs.held().begin(), jobs.held().end());
  all.insert(all.end(), jobs.finishing().begin(), jobs.finishing().end());
  all.insert(all.end(), jobs.cpu_jobs().begin(), jobs.cpu_jobs().end());
  all.insert(all.end(), jobs.cpu_finishing().begin(), jobs.cpu_finishing().end());
  all.insert(all.end(), jobs.unjudged().begin(), jobs.unjudged().end());
  all.insert(all.end(), jobs.deferred().begin(), jobs.deferred().end());
  std::sort(all.begin(), all.end());
  return all;
}

Duration TimeUnder(const Configuration& configuration, const JobSpec& job) {
  constexpr double kMost = 1e9;
  const double rate = configuration.rates->Rate(job, job.gpus);
  const double work = configuration.rates->TotalWork(job);
  return FromSeconds(std::min(rate > 0 ? work / rate : work, kMost));
}

}  // namespace

std::shared_ptr<const JobSpec> SpecUnder(const Configuration& next, const Configuration& former,
                                         const JobSpec& job) {
  auto spec = std::make_shared<JobSpec>(job);
  spec->profile_row = -1;
  next.FindRow(*spec);
  if (JobSpec bound = *spec; next.Bind(bound).ok()) {
    *spec = std::move(bound);
  }
  if (!spec->duration && spec->profile_row < 0 && !profile::StatesStages(*spec)) {
    spec->duration = TimeUnder(former, job);
  }
  return spec;
}

// From one configuration to another.
class Engine::Change {
 public:
  Change(Engine& engine, SharedConfiguration next) : engine_(engine), next_(std::move(next)) {}

  void Make();

 private:
  void AccrueAll();
  void TakeGpusNotInNext(const model::NodeClasses& classes);
  void ListFinishing(const model::NodeClasses& classes);
  void AdoptData();
  void AdoptJobs();
  void Rebind(JobId job);
  void Respecify(JobId job);

  Engine& engine_;
  const SharedConfiguration next_;
  std::unique_ptr<Parts> former_;
};

void Engine::Change::Make() {
  CHECK(next_->cluster.nodes.size() >= engine_.cluster().nodes.size());
  AccrueAll();
  const model::NodeClasses classes(next_->cluster);
  TakeGpusNotInNext(classes);
  engine_.nodes_.List(engine_.cluster(), next_->cluster);
  engine_.nodes_.LeaveNoRequeueAlone(NoRequeue::IsLeftAlone(*next_));
  ListFinishing(classes);
  former_ = std::move(engine_.parts_);
  engine_.parts_ =
      std::make_unique<Parts>(next_, former_->book(), engine_.jobs_, engine_.nodes_.all());
  engine_.selector_ = next_->selector;
  engine_.in_charge_ = 0;
  engine_.first_end_ = kEndOfTime;
  engine_.first_end_early_ = 0;
  AdoptData();
  AdoptJobs();
  engine_.parts_->scheduler.Join(engine_.now_);
  engine_.parts_->instants.AddFact(engine_.now_);
}

void Engine::Change::AccrueAll() {
  for (const JobId id : JobsToCome(engine_.jobs_)) {
    model::JobRecord& job = engine_.jobs_[id];
    engine_.parts_->ledger.Accrue(job, std::max(engine_.now_, job.progress.as_of));
  }
}

void Engine::Change::TakeGpusNotInNext(const model::NodeClasses& classes) {
  const model::JobRecords& jobs = engine_.jobs_;
  std::vector<JobId> running = jobs.AllRunning();
  std::sort(running.begin(), running.end(), [&jobs](JobId a, JobId b) {
    return std::tuple(jobs.IsCpuJob(a), jobs[a].arrival, a) <
           std::tuple(jobs.IsCpuJob(b), jobs[b].arrival, b);
  });
  Keeping keeping(engine_.cluster(), *next_);
  for (const JobId job : running) {
    const bool names_gpus = next_->bundle.traits().may.name_gpus;
    const bool in_the_way = jobs.IsFinishing(job) && names_gpus &&
                            engine_.nodes_.LiesOn(job, true) &&
                            !model::IsNoRequeue(*jobs[job].spec);
    const bool loses_place = !classes.InPartition(*jobs[job].spec, jobs[job].grant.slices) &&
                             (names_gpus || !engine_.nodes_.MayFinish(job));
    if (in_the_way || loses_place || !keeping.Keeps(*jobs[job].spec, jobs[job].grant)) {
      ++engine_.jobs_[job].preemptions;
      engine_.TakeGpus(job, false);
    }
  }
}

// Jobs on nodes that have left their partition run there until they end.
void Engine::Change::ListFinishing(const model::NodeClasses& classes) {
  const std::set<JobId> finishing = engine_.nodes_.JobsFinishing(classes);
  const std::vector<JobId> running = engine_.jobs_.AllRunning();
  for (const JobId job : running) {
    if (finishing.contains(job) && !engine_.jobs_.IsFinishing(job)) {
      engine_.jobs_.LeaveAlone(job);
    } else if (!finishing.contains(job) && engine_.jobs_.IsFinishing(job)) {
      engine_.jobs_.ReturnToPolicy(job);
    }
  }
}

void Engine::Change::AdoptData() {
  model::DataCaches& data = engine_.parts_->charges.data();
  data.TakeOver(former_->charges.data());
  for (std::size_t i = 0; i < next_->cluster.nodes.size(); ++i) {
    if (IsRemoved(next_->cluster.nodes[i])) {
      data.Clear(NodeAt(i));
    }
  }
  engine_.parts_->charges.CountDecisions(engine_.decisions_);
}

void Engine::Change::AdoptJobs() {
  Parts& parts = *engine_.parts_;
  parts.views.SetNow(engine_.now_);
  if (!former_->instants.submits_to_come()) {
    parts.instants.NoMoreSubmits();
  }
  CHECK(parts.grants.OccupyAll());
  const std::vector<JobId> all = JobsToCome(engine_.jobs_);
  for (const JobId job : all) {
    Rebind(job);
  }
  for (std::size_t i = 0; i < engine_.jobs_.size();
       ++i) {  // ended ones are shown by their rows, too
    const model::JobRecord& job = engine_.jobs_.At(JobAt(i));
    if (job.phase.get() >= model::JobPhase::kCompleted && job.spec->profile_row >= 0) {
      Respecify(JobAt(i));
    }
  }
  for (const JobId id : all) {
    model::JobRecord& job = engine_.jobs_[id];
    if (job.grant.holds()) {
      job.forecast = {};
      parts.grants.Renew(id);
      if (next_->rules.end.source != model::EndRule::Source::kPlanned) {
        engine_.Predict(id, job.progress.as_of, false);
      }
      AddRate(job, engine_.Act(model::ActionKind::kPace, id));
    }
  }
}

void Engine::Change::Rebind(JobId id) {
  const Parts& parts = *engine_.parts_;
  model::JobRecord& job = engine_.jobs_[id];
  const double stated_before = former_->ledger.StatedWork(job);
  Respecify(id);
  parts.Relearn(engine_.jobs_, id);
  parts.ledger.Restate(job, stated_before);
}

void Engine::Change::Respecify(JobId id) {
  if (next_->BindsJobs() || former_->configuration->BindsJobs()) {
    engine_.jobs_.Respecify(id,
                            SpecUnder(*next_, *former_->configuration, *engine_.jobs_.At(id).spec));
  }
}

void Engine::Reconfigure(SharedConfiguration next) { Change(*this, std::move(next)).Make(); }

Result<SharedConfiguration> Engine::ReadConfiguration(std::string_view note,
                                                      const Configuration& present) const {
  if (configurations_ == nullptr) {
    return Failed("the configuration cannot be changed here");
  }
  return configurations_->Read(note, present);
}

Result<SharedConfiguration> Engine::MakeConfiguration(const AskedConfiguration& asked,
                                                      const Configuration& present) const {
  if (configurations_ == nullptr) {
    return Failed("the configuration cannot be changed here");
  }
  return configurations_->Make(asked, present);
}

}  // namespace trainyard::engine
