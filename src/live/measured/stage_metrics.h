// SPDX-License-Identifier: Apache-2.0
// What agents report of the stages of running jobs, for people and policies to see; what corrects
// the profiles is measured/meter.h's.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "profile/interleave.h"
#include "trainyard/job.h"
#include "trainyard/live.pb.h"

namespace trainyard::live {

// What a report says of stages, as metrics, so that it reaches the journal: in two digits, since
// each change is a fact.
[[nodiscard]] google::protobuf::RepeatedPtrField<v1::Metric> StageMetrics(
    const v1::AttemptReport& report);

// How the jobs interleave that hold the same GPUs, in the order of their group. None: there is one
// job only, or some do not state their stages.
[[nodiscard]] std::optional<profile::Interleaving> InterleavingOf(
    std::span<const JobSpec* const> group);

}  // namespace trainyard::live
