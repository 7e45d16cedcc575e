// SPDX-License-Identifier: Apache-2.0
// Why jobs wait. Kept per demand class (GPU count and GPU types), not per job.
#pragma once

#include <cstdint>

#include "trainyard/ids.h"
#include "trainyard/state.h"

namespace trainyard::model {

enum class WaitReason : std::uint8_t {
  kGpus,        // not enough free GPUs in the cluster
  kLocality,    // enough in sum, but not where one gang may lie
  kBehindHead,  // the policy serves strictly in order and an earlier job does not fit
  kNever,       // could not fit into the empty cluster
  kResources,   // enough free GPUs, but not beside CPUs, memory, licences or on nodes as it asks
};

// A demand class that got nothing.
struct Blocked {
  JobId first{};  // its best-ranked job
  int gpus = 0;
  WaitReason reason{};
  int kind = 0;  // of the GPU types that it may have: the same number, the same types

  void Serialize(StateStream& state) { state(first, gpus, reason, kind); }
};

}  // namespace trainyard::model
