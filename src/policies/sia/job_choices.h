// SPDX-License-Identifier: Apache-2.0
// What configurations are worth to a job (Sia, SOSP'23, sections 3.2 and 3.3): its goodput there,
// or its throughput where it reports none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/node_classes.h"
#include "policies/sia/configurations.h"
#include "policies/sia/known_training.h"
#include "trainyard/snapshot.h"

namespace trainyard::policies {

// The nodes of a cluster as a decision sees them.
struct SiaNodes {
  explicit SiaNodes(const Snapshot& snapshot);

  const Cluster& cluster;
  model::NodeClasses classes;
  std::vector<NodeKind> kinds;
  std::vector<Configuration> configurations;
  std::vector<std::int64_t> numbers;  // profile::NumberOfType, by type
  // The GPUs of the largest node of the type of that number; none: it has no nodes.
  [[nodiscard]] std::optional<int> NodeGpusOf(std::int64_t number) const;
  // GPUs of the kind that the configuration takes from others.
  [[nodiscard]] int TakenBy(const Configuration& configuration) const;
};

struct JobChoice {
  Configuration configuration;
  double worth = 0;      // > 0; the least of a job's is 1
  bool untried = false;  // more GPUs of the type than it has measured itself on
};

// Samples of the initial batch's worth a second; 0: it cannot run so. Of a type that the training
// has not run on, or on one GPU of it only, it is as on the type that it has run on most, by the
// quotient of what one GPU of both does. REQUIRES: a type is known.
[[nodiscard]] double EstimateOn(const Configuration& configuration, const JobSpec& job,
                                const KnownTraining& known, const SiaNodes& nodes,
                                const ExecutionModel& rates);

// All that the job can use, by kind and then GPUs. A job whose numbers of GPUs are none of the
// configurations has those numbers, on as few nodes as can hold them.
[[nodiscard]] std::vector<JobChoice> ChoicesOf(const JobSpec& job, const KnownTraining& known,
                                               const SiaNodes& nodes, const ExecutionModel& rates);

}  // namespace trainyard::policies
