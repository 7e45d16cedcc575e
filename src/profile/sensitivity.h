// SPDX-License-Identifier: Apache-2.0
// What a job wants beside its GPUs, and how fast it runs with what it gets (Synergy, OSDI'22).
#pragma once

#include <memory>

#include "profile/sensitivity_table.h"
#include "trainyard/cluster.h"
#include "trainyard/snapshot.h"

namespace trainyard::profile {

struct SensitiveDemand {
  Resources best{};    // of the whole gang; with more it is no faster
  double speedup = 1;  // with that, against the proportional share
};

// The demand of a job with `gpus` GPUs on nodes like `node`: the profile's best amounts, but no
// more than one node has (a job of one node) or its proportional share (a larger one). Where CPUs
// are cut, the speedup shrinks in proportion (as in Synergy's simulator). An amount that the node
// does not state is 0 in the demand and counts as met.
[[nodiscard]] SensitiveDemand DemandOf(const SensitivityProfile& profile, int gpus,
                                       const NodeSpec& node, double storage_mbps_per_gpu);

struct SensitivityRules {
  // What the CPUs and memory of a grant do to a job.
  enum class Speed : std::uint8_t {
    kMatrix,  // the profile's grid, between whose points is interpolated
    kScalar,  // the speedup where the whole demand is met, else that of the proportional share
    kProportional,  // always that of the proportional share
  };
  Speed speed = Speed::kMatrix;
  double storage_mbps_per_gpu = 0;  // every job's demand
};

// The ratio of CPUs to GPUs whose profiles are taken for the cluster: its own, or the nearest that
// there is (the smaller one of a tie).
[[nodiscard]] double ProfiledRatio(const SensitivityTable& table, const Cluster& cluster);

// Complains where the rules need more than the table has: profiles for exactly the cluster's ratio,
// as their speedups are relative to its proportional share; or, for kMatrix, a grid for each model.
[[nodiscard]] Status CheckRatio(const SensitivityTable& table, const Cluster& cluster,
                                const SensitivityRules& rules);

// Work is iterations. Jobs run on the requested number of GPUs only. `table` and `cluster` must
// outlive the model. Under kMatrix a model's profile is the one for its smallest ratio with a grid,
// whichever the cluster's is. REQUIRES: CheckRatio; every job states its iterations;
// JobSpec::profile_row is a 1-GPU profile of the table.
[[nodiscard]] std::unique_ptr<ExecutionModel> MakeSensitivityModel(const SensitivityTable& table,
                                                                   const Cluster& cluster,
                                                                   const SensitivityRules& rules);

}  // namespace trainyard::profile
