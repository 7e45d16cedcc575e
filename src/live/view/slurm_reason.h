// SPDX-License-Identifier: Apache-2.0
// Why a job waits or has failed, in a word of Slurm's.
#pragma once

#include <string_view>

#include "live/view/cluster_view.h"
#include "trainyard/ids.h"
#include "trainyard/live.pb.h"
#include "trainyard/time.h"

namespace trainyard::live {

// "Resources", "JobHeldUser", "TimeLimit"; "None": there is nothing to say. REQUIRES: the engine
// knows the job.
[[nodiscard]] std::string_view SlurmReasonOf(const ClusterView& view, TimePoint now, JobId job,
                                             v1::JobState state);

}  // namespace trainyard::live
