// SPDX-License-Identifier: Apache-2.0
// A job of a trace as a cluster is asked for it, with trainers that are only played.
#pragma once

#include "trainyard/job.h"
#include "trainyard/live.pb.h"

namespace trainyard {

[[nodiscard]] v1::JobRequest EmulatedRequest(const JobSpec& job);

}  // namespace trainyard
