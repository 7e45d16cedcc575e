// SPDX-License-Identifier: Apache-2.0
// Fits the throughput model to measured runs: coefficients that cannot be negative, so that no
// prediction can, and how good they are on runs that they have not seen
// (docs/policies/torchloader.md).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "loader/least_squares.h"
#include "loader/model_catalog.h"
#include "loader/throughput_model.h"
#include "trainyard/status.h"

namespace trainyard::loader {

// One job that had its GPUs for itself.
struct MeasuredRun {
  ModelSize size;
  TrainingShape shape;
  int workers = 0;  // of all devices together
  double iteration_seconds = 0;
  double loading_seconds = 0;  // of an iteration, waiting for data

  // Images per second of all devices.
  [[nodiscard]] double Rate() const { return shape.batch / iteration_seconds; }
};

// Columns: model, batch_size, num_worker, num_device, ave_iteration, and perhaps ave_dataloading
// (none: nothing waited), params and flops; of runs with a row for each device (column device) only
// device_0 counts. Models are looked up in `catalog` unless it is null; then params and flops must
// be there. Errors: those of CsvTable; numbers that are not positive; unknown models; no rows.
[[nodiscard]] Result<std::vector<MeasuredRun>> ReadMeasuredRuns(const std::string& path,
                                                                const ModelCatalog* catalog);

enum class GpuFeatures : unsigned char {
  kFlops,  // of all kinds of layers together: four coefficients
  kKinds,  // of each kind: eight, for runs of many different models
};

enum class FitMethod : unsigned char {
  kNonNegative,  // least relative residuals, no coefficient below zero
  kLinear,       // least absolute residuals, as published
  kNearest,      // the mean of the two nearest runs: best where the same run is there twice
};

struct FitOptions {
  GpuFeatures features = GpuFeatures::kFlops;
  int folds = 5;
  double loading_share = 0.05;  // of an iteration, from which on the loader was the limit
};

// R2 is that of seconds (per iteration, per image), the error that of images per second.
struct FitQuality {
  double r2 = 0;
  double error = 0;  // mean absolute error, relative to what was measured
};

struct MethodQuality {
  FitMethod method{};
  FitQuality seen;    // fitted to all runs
  FitQuality unseen;  // each run by a fit without its fold; 0 and 0 with less than two folds
};

// Of one side, the GPUs or the loader.
struct SideReport {
  std::size_t runs = 0;
  std::vector<MethodQuality> methods;
};

struct LoaderFit {
  // By kNonNegative; a side without runs is as shipped.
  ThroughputModel model;
  SideReport gpu;
  SideReport loader;
};

// Runs of one model, batch and number of devices are in one fold, so that none of them is known to
// the fit that predicts the others. REQUIRES: folds >= 1; kKinds: kinds are known.
[[nodiscard]] LoaderFit FitThroughputModel(std::span<const MeasuredRun> runs,
                                           const FitOptions& options);

[[nodiscard]] bool LoaderWasTheLimit(const MeasuredRun& run, double loading_share);

// The rows of the regression for the GPU side.
[[nodiscard]] DesignMatrix GpuDesign(std::span<const MeasuredRun> runs, GpuFeatures features);
// Seconds of an iteration of each of `wanted`, learned from `known`, by a method. REQUIRES: `known`
// is not empty.
[[nodiscard]] std::vector<double> PredictIterations(FitMethod method, GpuFeatures features,
                                                    std::span<const MeasuredRun> known,
                                                    std::span<const MeasuredRun> wanted);

[[nodiscard]] std::string_view NameOf(FitMethod method);

}  // namespace trainyard::loader
