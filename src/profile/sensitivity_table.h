// SPDX-License-Identifier: Apache-2.0
// Resource sensitivity: how much faster a model trains with more CPUs and memory per GPU than its
// proportional share of a node (docs/formats/sensitivity.md).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainyard/status.h"

namespace trainyard::profile {

// Throughput by CPUs and memory per GPU; 1 is that of the proportional share.
struct SensitivityGrid {
  std::vector<double> cpus;       // per GPU, ascending
  std::vector<double> memory_gb;  // per GPU, ascending
  std::vector<double> values;     // a row for each of `cpus`, a column for each of `memory_gb`

  [[nodiscard]] bool empty() const { return values.empty(); }
  // Bilinear between the grid's points; beyond its edges as at the edge. REQUIRES: !empty().
  [[nodiscard]] double At(double cpus_per_gpu, double memory_gb_per_gpu) const;
  [[nodiscard]] double Value(std::size_t row, std::size_t column) const {
    return values[row * memory_gb.size() + column];
  }
};

// One model on nodes with one ratio of CPUs to GPUs. All amounts per GPU.
struct SensitivityProfile {
  double ratio = 0;  // CPUs per GPU of the nodes
  std::string model;
  int gpus = 1;            // of the job that was measured
  std::string family;      // kind of training (image, language, speech); may be empty
  int number = -1;         // in the published generator's list of models; -1: not in it
  bool published = false;  // one of those that the published simulator loads
  double best_cpus = 0;    // with more it is no faster
  double best_memory_gb = 0;
  double best_storage_mbps = 0;
  std::int64_t batch_size = 0;
  double speedup = 1;            // with the best amounts, against the proportional share
  double iteration_seconds = 0;  // at the proportional share
  SensitivityGrid grid;          // empty: not measured
};

class SensitivityTable {
 public:
  // Reads model_profiles.csv and, where there is one, throughput_matrix.csv of a folder.
  // Errors: those of CsvTable; an unknown or missing column; a number out of range; a profile or a
  // grid row twice; a grid without its profile, incomplete or not ascending.
  [[nodiscard]] static Result<SensitivityTable> Read(const std::string& folder);
  // Whether the folder holds such profiles.
  [[nodiscard]] static bool IsAt(const std::string& folder);

  // By ratio, model and GPU count.
  [[nodiscard]] std::span<const SensitivityProfile> profiles() const { return profiles_; }
  // The 1-GPU profile of the model for nodes of that ratio, or null.
  [[nodiscard]] const SensitivityProfile* Find(std::string_view model, double ratio) const;
  // The CPU:GPU ratios that there are profiles for, ascending.
  [[nodiscard]] const std::vector<double>& ratios() const { return ratios_; }
  [[nodiscard]] std::vector<std::string_view> models() const;

 private:
  std::vector<SensitivityProfile> profiles_;
  std::vector<double> ratios_;
};

}  // namespace trainyard::profile
