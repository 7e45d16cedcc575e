// SPDX-License-Identifier: Apache-2.0
// All that is known about loading and its models: what a run is given as its profiles.
#pragma once

#include <string>
#include <vector>

#include "loader/model_catalog.h"
#include "loader/throughput_model.h"
#include "trainyard/job.h"
#include "trainyard/status.h"

namespace trainyard::loader {

class LoaderProfiles {
 public:
  // A catalogue, or a folder with models.csv and perhaps loader_model.csv (otherwise the shipped
  // coefficients). Twins in the catalogue are refused in use. Errors: those of both readers.
  [[nodiscard]] static Result<LoaderProfiles> Read(const std::string& path);
  // Made by hand.
  [[nodiscard]] static LoaderProfiles Of(std::vector<ModelSize> sizes, ThroughputModel model);
  // Whether Read would find a catalogue there, good or bad.
  [[nodiscard]] static bool AreAt(const std::string& path);

  // `published`: without a floor under the seconds of an iteration (Published() of the shipped
  // coefficients).
  [[nodiscard]] ThroughputModel model(bool published = false) const;
  [[nodiscard]] const ModelCatalog& catalog() const { return catalog_; }

  // Errors: its model is not in the catalogue, or has a twin; no batch size.
  [[nodiscard]] Status Check(const JobSpec& job) const;
  // REQUIRES: Check(job) succeeds.
  [[nodiscard]] const ModelSize& SizeOf(const JobSpec& job) const;
  [[nodiscard]] static TrainingShape ShapeOf(const JobSpec& job);

 private:
  ModelCatalog catalog_;
  ThroughputModel model_ = ThroughputModel::Shipped();
};

}  // namespace trainyard::loader
