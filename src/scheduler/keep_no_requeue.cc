// SPDX-License-Identifier: Apache-2.0
#include "scheduler/keep_no_requeue.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "model/job_fields.h"
#include "scheduler/gpu_mask.h"

namespace trainyard::scheduler {
namespace {

class Keeper {
 public:
  Keeper(std::vector<Demand>& demands, const model::JobRecords& jobs, std::size_t nodes)
      : demands_(demands), jobs_(jobs), kept_(nodes), named_(nodes) {}

  [[nodiscard]] bool Keep(bool finds_others);

 private:
  [[nodiscard]] bool IsMeant(JobId job) const { return model::IsNoRequeue(*jobs_[job].spec); }
  [[nodiscard]] bool IsKept(JobId job) const {
    const Grant& grant = jobs_[job].grant;
    return grant.gpus > 0 && grant.running && grant.sharing == Sharing::kExclusive &&
           grant.group.empty() && IsMeant(job);
  }
  // Of a demand without slices the GPUs that its job holds.
  [[nodiscard]] const Slices& NamedBy(const Demand& demand) const {
    return demand.slices.empty() ? jobs_[demand.job].grant.slices : demand.slices;
  }
  [[nodiscard]] std::vector<Demand> DemandsOfKept();
  void Ungroup();
  void StartAlone();

  std::vector<Demand>& demands_;
  const model::JobRecords& jobs_;
  GpuMask kept_;
  GpuMask named_;  // by the demands of jobs of no such kind, and of those that start
};

// The finishing ones among them are the policy's no longer, and have no demand.
std::vector<Demand> Keeper::DemandsOfKept() {
  std::vector<Demand> demands;
  for (const JobId job : jobs_.running()) {
    if (!IsKept(job)) {
      continue;
    }
    const Grant& grant = jobs_[job].grant;
    kept_.Add(grant.slices);
    if (!jobs_.IsFinishing(job)) {
      demands.push_back({.job = job, .gpus = grant.gpus, .slices = grant.slices});
    }
  }
  std::sort(demands.begin(), demands.end(),
            [](const Demand& a, const Demand& b) { return a.job < b.job; });
  return demands;
}

// Takes the jobs of the kind out of groups; each has a demand of its own behind the group's.
void Keeper::Ungroup() {
  std::vector<Demand> demands;
  demands.reserve(demands_.size());
  for (Demand& demand : demands_) {
    std::vector<JobId> members{demand.job};
    members.insert(members.end(), demand.partners.begin(), demand.partners.end());
    const auto alone = std::stable_partition(members.begin(), members.end(),
                                             [this](JobId job) { return !IsMeant(job); });
    if (alone == members.end() || demand.partners.empty()) {
      demands.push_back(std::move(demand));
      continue;
    }
    const std::vector<JobId> leaving(alone, members.end());
    members.erase(alone, members.end());
    const int gpus = demand.gpus;
    if (!members.empty()) {
      demand.job = members.front();
      demand.partners.assign(members.begin() + 1, members.end());
      demands.push_back(std::move(demand));
    }
    for (const JobId job : leaving) {
      demands.push_back({.job = job, .gpus = gpus});
    }
  }
  demands_ = std::move(demands);
}

// Those of the kind that start share with nobody; where another demand names their GPUs they wait.
void Keeper::StartAlone() {
  for (const Demand& demand : demands_) {
    if (!IsMeant(demand.job)) {
      named_.Add(NamedBy(demand));
    }
  }
  std::erase_if(demands_, [this](Demand& demand) {
    if (!IsMeant(demand.job)) {
      return false;
    }
    if (named_.HasAnyOf(NamedBy(demand))) {
      return true;
    }
    named_.Add(NamedBy(demand));
    demand.sharing = Sharing::kExclusive;
    return false;
  });
}

bool Keeper::Keep(bool finds_others) {
  if (std::none_of(demands_.begin(), demands_.end(),
                   [this](const Demand& demand) {
                     return IsMeant(demand.job) ||
                            std::any_of(demand.partners.begin(), demand.partners.end(),
                                        [this](JobId job) { return IsMeant(job); });
                   }) &&
      std::none_of(jobs_.running().begin(), jobs_.running().end(),
                   [this](JobId job) { return IsMeant(job); })) {
    return false;
  }
  std::vector<Demand> kept = DemandsOfKept();
  const bool any = std::any_of(jobs_.running().begin(), jobs_.running().end(),
                               [this](JobId job) { return IsKept(job); });
  std::erase_if(demands_, [&](const Demand& demand) {
    return IsKept(demand.job) || (!finds_others && kept_.HasAnyOf(NamedBy(demand)));
  });
  Ungroup();
  StartAlone();
  kept.insert(kept.end(), std::make_move_iterator(demands_.begin()),
              std::make_move_iterator(demands_.end()));
  demands_ = std::move(kept);
  return any;
}

}  // namespace

bool KeepNoRequeue(std::vector<Demand>& demands, const model::JobRecords& jobs, std::size_t nodes,
                   bool finds_others) {
  return Keeper(demands, jobs, nodes).Keep(finds_others);
}

}  // namespace trainyard::scheduler
