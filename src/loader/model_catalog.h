// SPDX-License-Identifier: Apache-2.0
// What a model costs by its structure: weights, and multiply-accumulates by kind of layer. The
// throughput model predicts from these (docs/policies/torchloader.md).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainyard/status.h"

namespace trainyard::loader {

// Multiply-accumulates are those of one image.
struct ModelSize {
  std::string name;         // architecture and depth: "vgg13"
  double params = 0;        // weights
  double dense_flops = 0;   // convolutions over space and channels
  double point_flops = 0;   // 1x1 convolutions
  double depth_flops = 0;   // depthwise convolutions
  double linear_flops = 0;  // fully connected layers
  double flops = 0;         // all together
  bool kinds_known = true;  // false: only `flops` is stated
  std::int64_t line = 0;    // in its file
  std::int64_t twin = 0;    // line of a row that says otherwise; 0: there is none
};

class ModelCatalog {
 public:
  // A model that is there twice with different numbers: the file is refused, or only the use of
  // that model (a published catalogue has one). Rows that say the same are one.
  enum class Twins : unsigned char { kRefused, kRefusedInUse };

  // Columns: model, params, and C_flops, PC_flops, DC_flops, O_flops or just flops; other columns
  // are left alone. Errors: those of CsvTable; a negative number; no name; twins.
  [[nodiscard]] static Result<ModelCatalog> Read(const std::string& path,
                                                 Twins twins = Twins::kRefused);

  // Made by hand; each name once.
  [[nodiscard]] static ModelCatalog Of(std::vector<ModelSize> models);

  // By name.
  [[nodiscard]] std::span<const ModelSize> models() const { return models_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  // Valid as long as the catalogue. O(log models). Errors: no such model; one with a twin.
  [[nodiscard]] Result<const ModelSize*> Find(std::string_view name) const;

 private:
  std::string path_;
  std::vector<ModelSize> models_;
};

}  // namespace trainyard::loader
