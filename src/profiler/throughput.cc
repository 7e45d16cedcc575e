// SPDX-License-Identifier: Apache-2.0
#include "profiler/throughput.h"

#include <fmt/format.h>

#include "base/try.h"
#include "profiler/profile_file.h"

namespace trainyard::profiler {

Result<std::vector<ThroughputCell>> MeasureThroughput(const Subject& subject,
                                                      const ThroughputGrid& grid,
                                                      Measurer& measurer) {
  if (grid.batches.size() > 1) {
    RETURN_IF_ERROR(NeedsPlaceholder(subject, "batch"));
  }
  std::vector<ThroughputCell> cells;
  for (const std::int64_t batch : grid.batches) {
    for (const int gpus : grid.gpus) {
      ASSIGN_OR_RETURN(const Trial trial,
                       TrialOf(subject, {.batch = batch,
                                         .gpus = gpus,
                                         .loader_workers = grid.loader_workers_per_gpu * gpus}));
      ASSIGN_OR_RETURN(const Measured measured, measurer.Measure(trial));
      cells.push_back({.batch = batch, .gpus = gpus, .iteration_s = measured.iteration_s});
    }
  }
  return cells;
}

int UsefulMaximum(const std::vector<ThroughputCell>& cells, std::int64_t batch) {
  const ThroughputCell* best = nullptr;
  for (const ThroughputCell& cell : cells) {
    if (cell.batch == batch && (best == nullptr || cell.rate() > best->rate() ||
                                (cell.rate() == best->rate() && cell.gpus < best->gpus))) {
      best = &cell;
    }
  }
  return best == nullptr ? 0 : best->gpus;
}

Status WriteThroughput(const std::string& folder, const std::string& model,
                       const std::string& gpu_type, const std::vector<ThroughputCell>& cells) {
  Rows rows;
  for (const ThroughputCell& cell : cells) {
    rows.push_back({model, std::to_string(cell.batch), std::to_string(cell.gpus), gpu_type,
                    ProfileNumber(cell.rate())});
  }
  constexpr std::size_t kKey = 4;
  return AddRows(folder + "/throughput.csv",
                 {"model", "batch_size", "gpus", "gpu_type", "iterations_per_second"}, kKey, rows);
}

Status WriteProfilingTime(const std::string& folder, const std::string& model, double seconds) {
  return AddRows(folder + "/profiling.csv", {"model", "seconds"}, 1,
                 {{model, ProfileNumber(seconds)}});
}

}  // namespace trainyard::profiler
