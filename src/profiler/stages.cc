// SPDX-License-Identifier: Apache-2.0
#include "profiler/stages.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/try.h"
#include "profiler/profile_file.h"

namespace trainyard::profiler {

Result<std::vector<StageRow>> MeasureStages(const Subject& subject, const std::vector<int>& gpus,
                                            Measurer& measurer) {
  std::vector<StageRow> rows;
  for (const int count : gpus) {
    ASSIGN_OR_RETURN(const Trial trial, TrialOf(subject, {.gpus = count}));
    ASSIGN_OR_RETURN(const Measured measured, measurer.Measure(trial));
    const std::array<double, 3>& stages = measured.stages_s;
    if (std::all_of(stages.begin(), stages.end(), [](double seconds) { return seconds == 0; })) {
      return Failed(fmt::format(
          "{}: the script tells of no stages; expected `with job.stage(\"load\")` and the like "
          "around them (docs/pytorch.md), of workloads the option --interleave",
          trial.name));
    }
    rows.push_back({.gpus = count, .iteration_s = measured.iteration_s, .stages_s = stages});
  }
  return rows;
}

Status WriteStages(const std::string& folder, const Subject& subject,
                   const std::vector<StageRow>& rows) {
  Rows cells;
  for (const StageRow& row : rows) {
    std::vector<std::string>& line = cells.emplace_back(
        Rows::value_type{subject.model, std::to_string(subject.batch), std::to_string(row.gpus),
                         ProfileNumber(row.iteration_s.mean)});
    for (const double seconds : row.stages_s) {
      line.push_back(ProfileNumber(seconds));
    }
  }
  constexpr std::size_t kKey = 3;
  return AddRows(folder + "/stages.csv",
                 {"model", "batch_size", "gpus", "iteration_time", "stage_0", "stage_1", "stage_2"},
                 kKey, cells);
}

}  // namespace trainyard::profiler
