// SPDX-License-Identifier: Apache-2.0
// Iterations per second by batch size and number of GPUs (ElasticFlow, ASPLOS'23, figure 12a).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/measurement.h"
#include "profiler/subject.h"
#include "trainyard/status.h"

namespace trainyard::profiler {

struct ThroughputCell {
  std::int64_t batch = 0;
  int gpus = 0;
  Estimate iteration_s{};

  [[nodiscard]] double rate() const { return 1 / iteration_s.mean; }  // iterations per second
};

struct ThroughputGrid {
  std::vector<std::int64_t> batches;
  std::vector<int> gpus;
  int loader_workers_per_gpu = 0;
};

// One cell for each batch and number of GPUs, in this order. Errors: those of the measurements.
[[nodiscard]] Result<std::vector<ThroughputCell>> MeasureThroughput(const Subject& subject,
                                                                    const ThroughputGrid& grid,
                                                                    Measurer& measurer);

// The number of GPUs from which on more do not help: the least with the greatest rate.
[[nodiscard]] int UsefulMaximum(const std::vector<ThroughputCell>& cells, std::int64_t batch);

// Adds the cells to FOLDER/throughput.csv (docs/formats/profiles.md). `gpu_type`: on which they
// were measured; empty: any.
[[nodiscard]] Status WriteThroughput(const std::string& folder, const std::string& model,
                                     const std::string& gpu_type,
                                     const std::vector<ThroughputCell>& cells);
// What profiling the model took, into FOLDER/profiling.csv.
[[nodiscard]] Status WriteProfilingTime(const std::string& folder, const std::string& model,
                                        double seconds);

}  // namespace trainyard::profiler
