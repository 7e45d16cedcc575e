// SPDX-License-Identifier: Apache-2.0
#include "model/request/could_have.h"

#include "model/request/request_fit.h"

namespace trainyard::model {

bool CouldHave(const Cluster& cluster, const NodeClasses& classes, const JobSpec& job, int gpus,
               const std::vector<bool>* nodes) {
  if (!job.traits || !job.traits->request) {
    return true;
  }
  const NodeClassSet accepted = classes.Accepted(job);
  std::vector<bool> may_lie(cluster.nodes.size());
  for (std::size_t i = 0; i < may_lie.size(); ++i) {
    may_lie[i] = classes.Has(accepted, NodeAt(i)) && (nodes == nullptr || (*nodes)[i]);
  }
  JobSpec other = job;
  other.gpus = gpus;
  return CanBeMet(cluster, other, may_lie).ok();
}

}  // namespace trainyard::model
