// SPDX-License-Identifier: Apache-2.0
#include "engine/job_views.h"

namespace trainyard::engine {
namespace {

// Of all nodes, those that are down included: a share does not change with a failure.
Resources CapacityOf(const Cluster& cluster) {
  Resources capacity;
  for (const NodeSpec& node : cluster.nodes) {
    capacity += node.capacity;
  }
  return capacity;
}

}  // namespace

JobViews::JobViews(const Cluster& cluster, const model::JobRecords& jobs, const Ledger& ledger)
    : jobs_(jobs),
      ledger_(ledger),
      all_gpus_(cluster.total_gpus()),
      capacity_(CapacityOf(cluster)) {}

JobView JobViews::at(JobId job) const {
  const model::JobRecord& record = jobs_[job];
  JobView view = ledger_.View(job, record, now_, with_work_);
  const auto share = [](std::int64_t part, std::int64_t whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
  };
  view.shares = {.gpus = share(record.spec->gpus, all_gpus_),
                 .cpus = share(record.preferred.milli_cpus, capacity_.milli_cpus),
                 .memory = share(record.preferred.memory_mib, capacity_.memory_mib)};
  return view;
}

double JobViews::work_left(JobId job) const {
  return with_work_ ? ledger_.WorkLeft(jobs_[job], now_) : 0;
}

}  // namespace trainyard::engine
