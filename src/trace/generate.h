// SPDX-License-Identifier: Apache-2.0
// Seeded synthetic traces and profiles: the same seed gives the same bytes everywhere.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainyard/job.h"

namespace trainyard {

// A mix after the published distributions (docs/formats/example-data.md): exponential arrivals;
// 80 % of durations 60*10^U(1,2.5) s, the rest 60*10^U(2.5,4) s; mostly 1 GPU.
struct GeneratorOptions {
  int jobs = 0;  // >= 0
  std::uint64_t seed = 0;
  int cluster_gpus = 0;       // > 0; sizes the arrival rate together with `load`
  double load = 0.9;          // > 0; offered GPU-seconds / GPU-seconds there are
  int largest_job = 16;       // GPUs, >= 1; the powers of two up to it are drawn, up to 16
  double longest_hours = 0;   // durations are cut there; 0: not cut
  double deadline_share = 0;  // of the jobs, 0 to 1; deadline = submit + U(0.5, 1.5) * duration
};

// REQUIRES: the options are in the ranges given above.
[[nodiscard]] std::vector<JobSpec> GenerateTrace(const GeneratorOptions& options);

// The model zoo that generated jobs draw from, as one native profile file.
[[nodiscard]] std::string GenerateProfiles();

}  // namespace trainyard
