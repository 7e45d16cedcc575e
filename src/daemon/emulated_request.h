// SPDX-License-Identifier: Apache-2.0
// A job of a trace as a cluster is asked for it, with trainers that are only played.
#pragma once

#include <span>
#include <string>

#include "trainyard/cluster.h"
#include "trainyard/job.h"
#include "trainyard/live.pb.h"

namespace trainyard {

// `cluster` says what the nodes of the job's devices are called.
[[nodiscard]] v1::JobRequest EmulatedRequest(const JobSpec& job, const Cluster& cluster);

// Lets its workers run this instead, one for each GPU.
void RunCommand(std::span<const std::string> command, v1::JobRequest& request);

}  // namespace trainyard
