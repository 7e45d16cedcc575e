// SPDX-License-Identifier: Apache-2.0
// How long the stages of an iteration take: loading data, GPU, network (Muri, SIGCOMM'22,
// section 4). The script marks them by `stage()` of trainyard.train.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "profiler/measurement.h"
#include "profiler/subject.h"
#include "trainyard/status.h"

namespace trainyard::profiler {

struct StageRow {
  int gpus = 0;
  Estimate iteration_s{};
  std::array<double, 3> stages_s{};
};

// A row for each number of GPUs. Errors: those of the measurements; the script tells of no stages.
[[nodiscard]] Result<std::vector<StageRow>> MeasureStages(const Subject& subject,
                                                          const std::vector<int>& gpus,
                                                          Measurer& measurer);

// Adds the rows to FOLDER/stages.csv (docs/formats/profiles.md, "Stages").
[[nodiscard]] Status WriteStages(const std::string& folder, const Subject& subject,
                                 const std::vector<StageRow>& rows);

}  // namespace trainyard::profiler
