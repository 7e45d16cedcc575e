// SPDX-License-Identifier: Apache-2.0
// The synthetic traces of ElasticFlow's figures 9 to 11, drawn as the artifact's generator draws
// them: docs/formats/elasticflow.md.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "profile/throughput_table.h"
#include "trainyard/job.h"
#include "trainyard/status.h"

namespace trainyard::trace {

struct ElasticflowOptions {
  int jobs = 0;                        // >= 0
  double mean_interarrival = 0;        // seconds, > 0; the original's "lam"
  std::uint64_t seed = 0;              // below 2^63
  double least_deadline_factor = 0.5;  // >= 0; deadline = submit + U(least, most) * duration
  double most_deadline_factor = 1.5;   // >= least
  double best_effort_share = 0;        // of the jobs, 0 to 1
  int largest_job = 16;                // GPUs, >= 1; larger draws are cut to a power of two
  // Of deadline factors and best-effort marks, which the original draws from a generator without
  // a seed. None: seed + 4.
  std::optional<std::uint64_t> deadline_seed;
};

// The parameters of a figure's trace (9, 10 or 11). Figure 11 has one trace for each best-effort
// share from 0.1 to 0.9; its share is left at 0.
[[nodiscard]] std::optional<ElasticflowOptions> OptionsOfFigure(int figure);

// The profiles must have ElasticFlow's models. Best-effort jobs keep the deadline that was drawn
// for them, as in the original's files; readers drop it.
// Errors: a profile is missing (kBadInput); times beyond what a trace can hold (kInvalidArgument).
// REQUIRES: the options are in the ranges given above.
[[nodiscard]] Result<std::vector<JobSpec>> GenerateElasticflowTrace(
    const ElasticflowOptions& options, const profile::ThroughputTable& profiles);

}  // namespace trainyard::trace
