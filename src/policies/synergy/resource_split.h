// SPDX-License-Identifier: Apache-2.0
// The best division of CPUs and memory between jobs, as if they were one heap: an upper bound for
// mechanisms that must find them beside the GPUs (Synergy, OSDI'22, section 4.1).
#pragma once

#include <span>
#include <vector>

#include "trainyard/cluster.h"
#include "trainyard/snapshot.h"

namespace trainyard::policies {

struct SplitRules {
  // What a job may get for each GPU, besides its proportional share.
  std::vector<double> cpus;
  std::vector<double> memory_gb;
  bool weigh_by_gpus = true;  // a job's rate counts once for each GPU; false: once
};

struct ResourceSplit {
  std::vector<Resources> amounts;  // by job, of the whole gang
  double objective = 0;            // sum of the rates, each against that of the proportional share
  bool optimal = true;             // false: a limit of the solver came first
};

// Amounts that maximise the sum of the jobs' rates, with which no job is slower than with its
// proportional share, and which add up to no more than `total`. Jobs of one model and size are
// alike: the earlier ones get the faster amounts. Should the solver reach its limit without a
// solution, each job gets its share. REQUIRES: the shares of all jobs fit into `total`.
[[nodiscard]] ResourceSplit SplitResources(const SplitRules& rules,
                                           std::span<const JobSpec* const> jobs,
                                           const ExecutionModel& rates, const Resources& total,
                                           const Resources& share_of_gpu);

}  // namespace trainyard::policies
