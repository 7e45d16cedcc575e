// SPDX-License-Identifier: Apache-2.0
// Stage times by model, batch size and number of GPUs, as `trainyard profile stages` measures them
// (docs/formats/profiles.md, "Stages").
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainyard/job.h"
#include "trainyard/status.h"

namespace trainyard::profile {

struct StageRow {
  std::string model;
  std::int64_t batch_size = 0;
  int gpus = 1;
  StageTimes times;
};

class StageTable {
 public:
  // A file, or a folder with stages.csv. Columns: model, batch_size, gpus, iteration_time, stage_0
  // (loading), stage_1 (GPU), stage_2 (network), in seconds. Errors: those of CsvTable; an unknown
  // or missing column; a number out of range; a row twice.
  [[nodiscard]] static Result<StageTable> Read(const std::string& path);
  // Whether Read would find such a table there, good or bad.
  [[nodiscard]] static bool IsAt(const std::string& path);

  [[nodiscard]] std::span<const StageRow> rows() const { return rows_; }
  // The row of the job's model, batch size and number of GPUs, or null.
  [[nodiscard]] const StageRow* Find(const JobSpec& job) const;

 private:
  std::vector<StageRow> rows_;
};

// A job that states no stages gets those of the table, if it has a row; the iterations of one that
// states a duration only are those that take as long.
void BindStages(const StageTable& table, JobSpec& job);

}  // namespace trainyard::profile
