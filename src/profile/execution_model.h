// SPDX-License-Identifier: Apache-2.0
// The units of work: seconds of the declared duration, and iterations at the profile's rate.
#pragma once

#include <memory>

#include "profile/throughput_table.h"
#include "trainyard/snapshot.h"

namespace trainyard {

// Work is the declared duration, done at 1 second per second on the requested GPUs and not at all
// on any other number. REQUIRES: every job states its duration.
[[nodiscard]] std::unique_ptr<ExecutionModel> MakeDurationModel();

// Work is iterations, done at the rate of the job's profile row (JobSpec::profile_row), GPU count
// by GPU count, without interpolation. `table` must outlive the model. REQUIRES: every job states
// its iterations and is bound to a row.
[[nodiscard]] std::unique_ptr<ExecutionModel> MakeProfileModel(const ThroughputTable& table);

// Job by job: iterations where it is bound to a profile row, its declared duration otherwise.
// `table` may be null and must outlive the model. REQUIRES: every job states the one or the other.
[[nodiscard]] std::unique_ptr<ExecutionModel> MakeMixedModel(const ThroughputTable* table);

}  // namespace trainyard
