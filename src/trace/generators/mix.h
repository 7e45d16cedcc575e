// SPDX-License-Identifier: Apache-2.0
// Seeded synthetic traces and profiles: the same seed gives the same bytes everywhere.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "profile/throughput_table.h"
#include "trainyard/job.h"

namespace trainyard::trace {

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
  int data_sets = 0;          // made-up ones that jobs train on, >= 0; 0: none is stated
};

// REQUIRES: the options are in the ranges given above.
[[nodiscard]] std::vector<JobSpec> GenerateTrace(const GeneratorOptions& options);

// Gives each job one of `count` data sets, > 0, by draws of their own, so that the jobs are the
// same with and without. Sizes of 1 to 100 GB; the first sets are used most.
void AddDataSets(int count, std::uint64_t seed, std::span<JobSpec> jobs);

// The model zoo that generated jobs draw from, as one native profile file.
[[nodiscard]] std::string GenerateProfiles();
// The same as rows.
[[nodiscard]] std::vector<profile::ThroughputRow> GenerateProfileRows();

}  // namespace trainyard::trace
