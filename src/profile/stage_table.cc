// SPDX-License-Identifier: Apache-2.0
#include "profile/stage_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/try.h"
#include "io/bad_rows.h"
#include "io/csv_reader.h"
#include "profile/throughput_table.h"

namespace trainyard::profile {
namespace {

constexpr std::array<std::string_view, 7> kStageColumns{
    "model", "batch_size", "gpus", "iteration_time", "stage_0", "stage_1", "stage_2"};

std::string StageFileAt(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored) ? path + "/stages.csv" : path;
}

Result<StageRow> ReadRow(const io::CsvRow& row) {
  StageRow read{.model = std::string(row.Text(row.Column("model")))};
  if (read.model.empty()) {
    return row.Bad(row.Column("model"), "the name of a model");
  }
  ASSIGN_OR_RETURN(read.batch_size, row.Integer(row.Column("batch_size"), 1));
  ASSIGN_OR_RETURN(const std::int64_t gpus, row.Integer(row.Column("gpus"), 1, kMostProfiledGpus));
  read.gpus = static_cast<int>(gpus);
  ASSIGN_OR_RETURN(read.times.iteration, row.Positive(row.Column("iteration_time")));
  for (const std::string_view stage : {"stage_0", "stage_1", "stage_2"}) {
    ASSIGN_OR_RETURN(const double seconds, row.Number(row.Column(stage), 0));
    read.times.stages.push_back(seconds);
  }
  return read;
}

bool IsOf(const StageRow& row, std::string_view model, std::int64_t batch_size, int gpus) {
  return row.model == model && row.batch_size == batch_size && row.gpus == gpus;
}

}  // namespace

bool StageTable::IsAt(const std::string& path) {
  const std::string file = StageFileAt(path);
  if (!std::filesystem::is_regular_file(file)) {
    return false;
  }
  const Result<io::CsvTable> table = io::CsvTable::Open(file);
  return table.ok() && table.value().Column({"stage_0"}) >= 0 &&
         table.value().Column({"submit_time"}) < 0;
}

Result<StageTable> StageTable::Read(const std::string& path) {
  ASSIGN_OR_RETURN(const io::CsvTable csv, io::CsvTable::Open(StageFileAt(path)));
  RETURN_IF_ERROR(csv.CheckKnown(kStageColumns));
  for (const std::string_view name : kStageColumns) {
    RETURN_IF_ERROR(csv.Require({name}));
  }
  StageTable table;
  RETURN_IF_ERROR(io::ForEachTold(csv, [&table](const io::CsvRow& row) -> Status {
    ASSIGN_OR_RETURN(StageRow read, ReadRow(row));
    if (std::any_of(table.rows_.begin(), table.rows_.end(), [&read](const StageRow& other) {
          return IsOf(other, read.model, read.batch_size, read.gpus);
        })) {
      return row.BadRow(
          fmt::format("'{}' with batch size {} on {} GPUs is there twice; expected "
                      "one row for each",
                      read.model, read.batch_size, read.gpus));
    }
    table.rows_.push_back(std::move(read));
    return {};
  }));
  return table;
}

const StageRow* StageTable::Find(const JobSpec& job) const {
  const auto found = std::find_if(rows_.begin(), rows_.end(), [&job](const StageRow& row) {
    return IsOf(row, job.model, job.batch_size, job.gpus);
  });
  return found == rows_.end() ? nullptr : &*found;
}

void BindStages(const StageTable& table, JobSpec& job) {
  const StageRow* row = table.Find(job);
  if (row == nullptr || (job.traits != nullptr && job.traits->stages)) {
    return;
  }
  JobTraits traits = job.traits == nullptr ? JobTraits() : *job.traits;
  traits.stages = row->times;
  job.traits = std::make_shared<const JobTraits>(std::move(traits));
  if (!job.iterations && job.duration) {
    job.iterations = std::max(1.0, std::round(Seconds(*job.duration) / row->times.iteration));
  }
}

}  // namespace trainyard::profile
