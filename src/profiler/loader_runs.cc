// SPDX-License-Identifier: Apache-2.0
#include "profiler/loader_runs.h"

#include <fmt/format.h>

#include "base/try.h"
#include "profiler/profile_file.h"
#include "results/write/output_file.h"

namespace trainyard::profiler {
namespace {

std::string Count(double value) { return fmt::format("{:.0f}", value); }

}  // namespace

Result<std::vector<loader::MeasuredRun>> MeasureLoader(const Subject& subject,
                                                       const LoaderGrid& grid,
                                                       const loader::ModelSize& size,
                                                       Measurer& measurer) {
  if (grid.batches.size() > 1) {
    RETURN_IF_ERROR(NeedsPlaceholder(subject, "batch"));
  }
  if (grid.workers.size() > 1) {
    RETURN_IF_ERROR(NeedsPlaceholder(subject, "workers"));
  }
  std::vector<loader::MeasuredRun> runs;
  for (const std::int64_t batch : grid.batches) {
    for (const int workers : grid.workers) {
      ASSIGN_OR_RETURN(
          const Trial trial,
          TrialOf(subject, {.batch = batch, .gpus = grid.devices, .loader_workers = workers}));
      ASSIGN_OR_RETURN(const Measured measured, measurer.Measure(trial));
      const double seconds = measured.iteration_s.mean;
      runs.push_back({.size = size,
                      .shape = {.batch = static_cast<double>(batch), .devices = grid.devices},
                      .workers = workers,
                      .iteration_seconds = seconds,
                      .loading_seconds = measured.loading_share * seconds});
    }
  }
  return runs;
}

Result<loader::LoaderFit> WriteLoader(const std::string& folder,
                                      const std::vector<loader::MeasuredRun>& runs,
                                      const loader::FitOptions& options) {
  Rows rows;
  Rows models;
  for (const loader::MeasuredRun& run : runs) {
    rows.push_back({run.size.name, Count(run.shape.batch), std::to_string(run.workers),
                    std::to_string(run.shape.devices), ProfileNumber(run.iteration_seconds),
                    ProfileNumber(run.loading_seconds), Count(run.size.params),
                    Count(run.size.flops)});
    models = {{run.size.name, Count(run.size.params), Count(run.size.flops)}};
  }
  const std::string path = folder + "/runs.csv";
  RETURN_IF_ERROR(AddRows(path,
                          {"model", "batch_size", "num_worker", "num_device", "ave_iteration",
                           "ave_dataloading", "params", "flops"},
                          4, rows));
  RETURN_IF_ERROR(AddRows(folder + "/models.csv", {"model", "params", "flops"}, 1, models));
  ASSIGN_OR_RETURN(const std::vector<loader::MeasuredRun> all,
                   loader::ReadMeasuredRuns(path, nullptr));
  loader::LoaderFit fit = loader::FitThroughputModel(all, options);
  RETURN_IF_ERROR(results::WriteTextFile(folder + "/loader_model.csv", fit.model.Write()));
  return fit;
}

}  // namespace trainyard::profiler
