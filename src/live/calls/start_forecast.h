// SPDX-License-Identifier: Apache-2.0
// When a job would start that is not submitted: by simulation of the jobs that there are.
#pragma once

#include <memory>
#include <optional>

#include "engine/engine.h"
#include "trainyard/job.h"
#include "trainyard/plan.h"
#include "trainyard/time.h"

namespace trainyard::live {

struct ForecastStart {
  TimePoint at{};
  Grant grant{};
};

// If it were submitted at `now`, nothing else came, and jobs took as long as they state. Nothing:
// it would not start within a year, as far as that is known, or nothing is decided at present.
// Costs as much as a run of what is there until the job starts; the engine stays as it is.
[[nodiscard]] std::optional<ForecastStart> StartOf(const engine::Engine& engine, TimePoint now,
                                                   const std::shared_ptr<const JobSpec>& job);

}  // namespace trainyard::live
