// SPDX-License-Identifier: Apache-2.0
// The job streams of the Blox simulators, draw by draw: docs/formats/blox.md.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trainyard/job.h"
#include "trainyard/status.h"

namespace trainyard::trace {

// What the jobs of a stream last and ask for, drawn by somebody else; job n takes row n modulo the
// number of rows (the simulators take them from a list of Philly jobs).
struct BloxPool {
  struct Row {
    double iterations = 0;  // seconds, > 0
    int gpus = 1;
  };
  std::vector<Row> rows;
};

struct BloxOptions {
  double jobs_per_hour = 0;  // > 0; the original's "load"
  std::uint64_t seed = 1;
  // What is handed over by then, in rounds of 300 s from time 0. Either this or `jobs`.
  std::optional<TimePoint> until;
  std::size_t jobs = 0;
  // Every four hours int(4 x jobs_per_hour) jobs of 10 to 60 minutes are handed over at once, as
  // many as in the published small-and-large workload. Not with a pool.
  bool bursts = false;
};

// Without a pool a job lasts 10 to 24 hours on 1 GPU.
// Errors: times beyond what a trace can hold (kInvalidArgument).
// REQUIRES: the options are in the ranges given above; the pool has rows or is null.
[[nodiscard]] Result<std::vector<JobSpec>> GenerateBloxTrace(const BloxOptions& options,
                                                             const BloxPool* pool);

// CSV: pool_index, total_iterations, num_gpus.
[[nodiscard]] Result<BloxPool> ReadBloxPool(const std::string& path);

}  // namespace trainyard::trace
