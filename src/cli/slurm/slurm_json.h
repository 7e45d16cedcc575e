// SPDX-License-Identifier: Apache-2.0
// --json of squeue, sinfo and sacct, in the shape of Slurm 22.05: the same keys with the same
// types, but for those of which nothing is known here, which are left out (docs/from-slurm.md).
#pragma once

#include <string>
#include <vector>

#include "cli/live/status/array_lines.h"
#include "trainyard/live.pb.h"

namespace trainyard::cli {

// A job, or the tasks of an array that wait, with its partition.
struct SlurmJobLine {
  JobLine line;
  std::string partition{};

  [[nodiscard]] const v1::JobStatus& job() const { return *line.job; }
};

// What squeue --json prints.
[[nodiscard]] std::string JsonOfQueue(const std::vector<SlurmJobLine>& jobs);
// Likewise sacct. `now`: seconds since 1970.
[[nodiscard]] std::string JsonOfAccounting(const std::vector<SlurmJobLine>& jobs, double now);

struct NodeWithCpus {
  const v1::NodeStatus* node = nullptr;
  int used_cpus = 0;  // by jobs
};
// Likewise sinfo.
[[nodiscard]] std::string JsonOfNodes(const std::vector<NodeWithCpus>& nodes);

}  // namespace trainyard::cli
