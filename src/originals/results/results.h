// SPDX-License-Identifier: Apache-2.0
// Finds and reads results: folders that trainyard wrote, and those of the published programs.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "originals/results/original.h"
#include "results/metrics/run_result.h"
#include "trainyard/status.h"

namespace trainyard::originals {

struct Results {
  std::vector<results::RunResult> runs;                  // each with a label of its own
  std::vector<std::optional<OriginalResult>> originals;  // of each run; none: trainyard's own
};

struct ResultsRequest {
  std::vector<std::string> paths;   // files or folders
  std::optional<Original> program;  // whose results the tables are; none: recognised
  double time_unit = 1;             // seconds in a unit of the tables of published programs
};

// Of a folder, all results in it and in the folders below, by name; trainyard's own come before
// those of published programs. Labels name the cluster where runs are on different ones. Errors:
// nothing is found; those of what is found; half a run; runs on different traces.
[[nodiscard]] Result<Results> ReadResults(const ResultsRequest& request);

}  // namespace trainyard::originals
