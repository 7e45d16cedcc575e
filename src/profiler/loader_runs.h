// SPDX-License-Identifier: Apache-2.0
// Runs with different numbers of loader workers, from which torchloader's model is fitted
// (IEEE CLOUD 2022; docs/policies/torchloader.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "loader/fit.h"
#include "profiler/measurement.h"
#include "profiler/subject.h"
#include "trainyard/status.h"

namespace trainyard::profiler {

struct LoaderGrid {
  std::vector<std::int64_t> batches;
  std::vector<int> workers;  // of all devices together
  int devices = 1;
};

// A run for each batch and number of workers. `size`: weights and multiply-accumulates of the
// model. Errors: those of the measurements.
[[nodiscard]] Result<std::vector<loader::MeasuredRun>> MeasureLoader(const Subject& subject,
                                                                     const LoaderGrid& grid,
                                                                     const loader::ModelSize& size,
                                                                     Measurer& measurer);

// Adds the runs to FOLDER/runs.csv and the model to FOLDER/models.csv, fits the throughput model to
// all runs that are in the file, and writes FOLDER/loader_model.csv. Returns the fit.
[[nodiscard]] Result<loader::LoaderFit> WriteLoader(const std::string& folder,
                                                    const std::vector<loader::MeasuredRun>& runs,
                                                    const loader::FitOptions& options);

}  // namespace trainyard::profiler
