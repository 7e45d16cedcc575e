// SPDX-License-Identifier: Apache-2.0
#include "model/request/could_have.h"

#include "model/request/request_fit.h"

namespace trainyard::model {

std::vector<bool> NodesOf(const Cluster& cluster, const NodeClasses& classes, NodeClassSet set) {
  std::vector<bool> nodes(cluster.nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i] = classes.Has(set, NodeAt(i));
  }
  return nodes;
}

bool CouldHave(const Cluster& cluster, const NodeClasses& classes, const JobSpec& job, int gpus,
               NodeClassSet among) {
  if (!job.traits || !job.traits->request) {
    return true;
  }
  JobSpec other = job;
  other.gpus = gpus;
  return CanBeMet(cluster, other, NodesOf(cluster, classes, classes.Accepted(job) & among)).ok();
}

}  // namespace trainyard::model
