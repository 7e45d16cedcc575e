// SPDX-License-Identifier: Apache-2.0
#include "engine/books/nodes_up.h"

#include <algorithm>
#include <bit>

#include "engine/configuration.h"
#include "model/job_fields.h"
#include "model/slices.h"

namespace trainyard::engine {

NodesUp::NodesUp(const Cluster& cluster, const model::JobRecords& jobs)
    : jobs_(jobs), up_(cluster.nodes.size(), true), gpus_(cluster.total_gpus()) {}

void NodesUp::Set(NodeId node, bool up, const Cluster& cluster) {
  if (up_[Index(node)] != up) {
    const int gpus = cluster.nodes[Index(node)].gpus;
    gpus_ += up ? gpus : -gpus;
    up_[Index(node)] = up;
  }
  ++changes_;
}

void NodesUp::List(const Cluster& before, const Cluster& after) {
  up_.resize(after.nodes.size(), false);
  gpus_ = 0;
  for (std::size_t i = 0; i < after.nodes.size(); ++i) {
    up_[i] = up_[i] && HasSameGpus(before.nodes[i], after.nodes[i]);
    gpus_ += up_[i] ? after.nodes[i].gpus : 0;
  }
  ++changes_;
}

std::vector<JobId> NodesUp::JobsOn(NodeId node) const {
  std::vector<JobId> jobs;
  for (const JobId job : jobs_.AllRunning()) {
    if (model::LieOn(jobs_[job].grant.slices, node)) {
      jobs.push_back(job);
    }
  }
  return jobs;
}

bool NodesUp::Finishes(JobId job, const model::NodeClasses& classes) const {
  return LiesOn(job, false) || !classes.InPartition(*jobs_[job].spec, jobs_[job].grant.slices) ||
         ((leaves_no_requeue_alone_ || jobs_.IsCpuJob(job)) &&
          model::IsNoRequeue(*jobs_[job].spec) && MayFinish(job));
}

std::set<JobId> NodesUp::JobsFinishing(const model::NodeClasses& classes) const {
  std::set<JobId> jobs;
  for (const JobId job : jobs_.AllRunning()) {
    if (Finishes(job, classes)) {
      jobs.insert(job);
    }
  }
  return jobs;
}

bool NodesUp::LiesOn(JobId job, bool up) const {
  const Slices& slices = jobs_[job].grant.slices;
  return std::any_of(slices.begin(), slices.end(),
                     [&](const Slice& slice) { return up_[Index(slice.node)] == up; });
}

bool NodesUp::MayFinish(JobId job) const {
  const Grant& grant = jobs_[job].grant;
  return grant.running && grant.sharing == Sharing::kExclusive && grant.group.empty();
}

bool NodesUp::MayFinishOn(NodeId node, JobId job, bool policy_names_gpus) const {
  const Slices& slices = jobs_[job].grant.slices;
  return MayFinish(job) && (!policy_names_gpus || model::IsNoRequeue(*jobs_[job].spec) ||
                            std::all_of(slices.begin(), slices.end(), [&](const Slice& slice) {
                              return slice.node == node || !up_[Index(slice.node)];
                            }));
}

int NodesUp::GpusFinishing(bool up) const {
  int gpus = 0;
  for (const JobId job : jobs_.finishing()) {
    gpus += up && jobs_[job].grant.slices.empty() ? jobs_[job].grant.gpus : 0;
    for (const Slice& slice : jobs_[job].grant.slices) {
      gpus += up_[Index(slice.node)] == up ? std::popcount(slice.gpus) : 0;
    }
  }
  return gpus;
}

}  // namespace trainyard::engine
