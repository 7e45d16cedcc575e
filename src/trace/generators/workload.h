// SPDX-License-Identifier: Apache-2.0
// Seeded traces by style: arrivals, sizes, durations, users, queues and models, each drawn from a
// stream of its own, so that an option changes what it says and nothing else. docs/generators.md
// says where the numbers of each style come from.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profile/throughput_table.h"
#include "trace/generators/week_shape.h"
#include "trainyard/job.h"
#include "trainyard/status.h"

namespace trainyard::trace {

// Jobs of one size: their share, and their durations, which are log-normal.
struct JobSizeClass {
  int gpus = 1;
  double share = 0;           // of the jobs, relative to the others
  double median_seconds = 0;  // > 0
  double spread = 0;          // the standard deviation of the logarithm, >= 0
};

// "name" or "name:batch_size", as often as its weight says.
struct ModelWeight {
  std::string name;
  double weight = 0;  // > 0
};

struct WorkloadOptions {
  // How many and how fast: two of `jobs`, `days` and one of the rates; the third follows.
  int jobs = 0;              // 0: by the days and the rate
  double days = 0;           // over which the jobs are submitted; 0: by the jobs and the rate
  double jobs_per_hour = 0;  // 0: by the load, or by the jobs and days
  double load = 0;           // offered GPU-seconds / GPU-seconds there are; 0: not given
  int cluster_gpus = 0;      // > 0 with a load
  std::uint64_t seed = 0;
  WeekOptions week;
  double burst_share = 0;  // of the jobs, submitted at once with the one before; 0 to 1, below 1

  std::vector<JobSizeClass> sizes;  // by GPUs, ascending
  int largest_job = 0;              // larger draws are cut to the largest size below; 0: never
  double least_seconds = 1;         // durations are cut to the range
  double most_seconds = 0;
  double failure_share = 0;  // of the jobs, which end after a uniform part of their duration

  double deadline_share = 0;           // of the jobs, which have a deadline
  double least_deadline_factor = 0.5;  // submit + U(least, most) * duration without a failure
  double most_deadline_factor = 1.5;
  double best_effort_share = 0;  // of the jobs; none of those with a deadline

  int users = 0;                    // 0: none is stated
  double user_skew = 1;             // user k submits in proportion to 1 / k^skew
  int queues = 0;                   // user k is in queue 1 + (k - 1) mod queues; 0: none is stated
  std::vector<ModelWeight> models;  // empty: all rows of the profiles alike
  int data_sets = 0;                // as with GeneratorOptions
};

struct WorkloadStyle {
  std::string_view name;
  std::string_view help;
  WorkloadOptions defaults;
};
// poisson, diurnal, itp-like, philly-like, helios-like.
[[nodiscard]] std::span<const WorkloadStyle> WorkloadStyles();

// Durations and iterations agree by the profiles' rates on the GPUs asked for.
// Errors (kInvalidArgument): an unknown model; no model that runs on that many GPUs; not two of
// jobs, days and rate; more than 100 million jobs; times beyond what a trace can hold.
// REQUIRES: the options are in the ranges given above; there are profiles.
[[nodiscard]] Result<std::vector<JobSpec>> GenerateWorkload(
    const WorkloadOptions& options, std::span<const profile::ThroughputRow> profiles);

}  // namespace trainyard::trace
