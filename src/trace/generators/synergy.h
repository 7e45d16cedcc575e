// SPDX-License-Identifier: Apache-2.0
// The synthetic job stream of the Synergy simulator, draw by draw: docs/formats/synergy.md.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "profile/sensitivity_table.h"
#include "trainyard/job.h"
#include "trainyard/status.h"

namespace trainyard::trace {

struct SynergyOptions {
  int jobs = 0;              // >= 0
  double jobs_per_hour = 0;  // > 0; the original's "load"
  std::uint64_t seed = 42;
  // Shares of the families image, language and speech; >= 0, one of them > 0.
  std::array<double, 3> split{20, 70, 10};
  bool one_gpu = false;  // every job asks for 1 GPU
  bool brief = false;    // the original's "small trace": 19 min to 8 h instead of 32 min to 7 days
};

// Models and iteration times are those of the profiles for `ratio` CPUs per GPU.
// Errors: a family has no models for that ratio (kBadInput); times beyond what a trace can hold
// (kInvalidArgument).
// REQUIRES: the options are in the ranges given above.
[[nodiscard]] Result<std::vector<JobSpec>> GenerateSynergyTrace(
    const SynergyOptions& options, const profile::SensitivityTable& profiles, double ratio);

}  // namespace trainyard::trace
