// SPDX-License-Identifier: Apache-2.0
// What the GPUs of a job can consume and what its loader workers can produce, in images per second
// (docs/policies/torchloader.md). Coefficients are data: the published ones, or a fit.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "loader/model_catalog.h"
#include "trainyard/status.h"

namespace trainyard::loader {

// How a job trains. `batch` is that of all devices together.
struct TrainingShape {
  double batch = 0;
  int devices = 0;
};

// Seconds of an iteration = base + network (devices - 1) params + params params
//   + batch/devices (batch_params params + batch_dense dense_flops + ...).
// Where a catalogue does not tell the kinds of multiply-accumulates apart, all count as dense ones.
struct GpuCoefficients {
  double base = 0;
  double network = 0;
  double params = 0;
  double batch_params = 0;
  double batch_dense = 0;
  double batch_point = 0;
  double batch_depth = 0;
  double batch_linear = 0;

  friend bool operator==(const GpuCoefficients&, const GpuCoefficients&) = default;
};

// Seconds of an image = per_worker / workers + shared.
struct LoaderCoefficients {
  double per_worker = 0;
  double shared = 0;  // what no number of workers gets below

  // Images per second of all workers of a job together; 0 without workers.
  [[nodiscard]] double Rate(double workers) const {
    return workers > 0 ? 1 / (per_worker / workers + shared) : 0;
  }
  friend bool operator==(const LoaderCoefficients&, const LoaderCoefficients&) = default;
};

struct ThroughputModel {
  GpuCoefficients gpu{};
  LoaderCoefficients loader{};
  // No iteration is predicted to be shorter; 0: as the coefficients say, even below zero.
  double least_seconds = 0;

  friend bool operator==(const ThroughputModel&, const ThroughputModel&) = default;

  [[nodiscard]] double IterationSeconds(const ModelSize& size, TrainingShape shape) const;
  // Images per second of one device that has its GPU alone.
  [[nodiscard]] double DeviceRate(const ModelSize& size, TrainingShape shape) const;
  // LoaderCoefficients::Rate.
  [[nodiscard]] double LoaderRate(double workers) const { return loader.Rate(workers); }
  // Of one worker, where each device has one.
  [[nodiscard]] double WorkerRate(int devices) const { return LoaderRate(devices) / devices; }

  // The published model with its defects: negative times for models of many weights and small
  // batches.
  [[nodiscard]] static ThroughputModel Published();
  // The same, with no iteration shorter than that of a model without layers (its `base`).
  [[nodiscard]] static ThroughputModel Shipped();

  // A file with the columns coefficient and value, as `trainyard loader fit` writes it. Errors:
  // those of CsvTable; an unknown, missing or repeated coefficient; a negative one.
  [[nodiscard]] static Result<ThroughputModel> Read(const std::string& path);
  [[nodiscard]] std::string Write() const;
};

// The names of all coefficients and where they are, in the order of files and reports.
struct CoefficientName {
  std::string_view name;
  std::string_view unit;
  double& (*of)(ThroughputModel& model);
};
[[nodiscard]] std::span<const CoefficientName> CoefficientNames();

}  // namespace trainyard::loader
