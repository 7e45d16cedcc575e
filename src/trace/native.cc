// SPDX-License-Identifier: Apache-2.0
// Trainyard's own trace format: docs/formats/native-trace.md.
#include <array>

#include "trace/csv_format.h"

namespace trainyard {
namespace {

constexpr std::array kNativeColumns{
    ColumnRule{.field = JobField::kJobId, .name = "job_id", .required = true},
    ColumnRule{.field = JobField::kSubmit, .name = "submit_time", .required = true},
    ColumnRule{.field = JobField::kGpus, .name = "gpus", .required = true},
    ColumnRule{.field = JobField::kDuration, .name = "duration"},
    ColumnRule{.field = JobField::kIterations, .name = "iterations"},
    ColumnRule{.field = JobField::kUser, .name = "user"},
    ColumnRule{.field = JobField::kQueue, .name = "queue"},
    ColumnRule{.field = JobField::kModel, .name = "model"},
    ColumnRule{.field = JobField::kBatchSize, .name = "batch_size"},
    ColumnRule{.field = JobField::kDeadline, .name = "deadline"},
    ColumnRule{.field = JobField::kBestEffort, .name = "best_effort"},
    ColumnRule{.field = JobField::kDataSet, .name = "data_set", .written_if_stated = true},
    ColumnRule{.field = JobField::kDataMib, .name = "data_mib", .written_if_stated = true},
    ColumnRule{.field = JobField::kDataHome, .name = "data_home", .written_if_stated = true},
    ColumnRule{.field = JobField::kGpuTypes, .name = "gpu_types", .written_if_stated = true},
    ColumnRule{.field = JobField::kHandover, .name = "handover_time", .written_if_stated = true},
    ColumnRule{.field = JobField::kPriority, .name = "priority", .written_if_stated = true},
    ColumnRule{.field = JobField::kTargets, .name = "target_times", .written_if_stated = true},
    ColumnRule{
        .field = JobField::kTargetValues, .name = "target_values", .written_if_stated = true},
    ColumnRule{
        .field = JobField::kStageIteration, .name = "iteration_time", .written_if_stated = true},
    ColumnRule{.field = JobField::kStage0, .name = "stage_0", .written_if_stated = true},
    ColumnRule{.field = JobField::kStage1, .name = "stage_1", .written_if_stated = true},
    ColumnRule{.field = JobField::kStage2, .name = "stage_2", .written_if_stated = true},
    ColumnRule{.field = JobField::kDevices, .name = "devices", .written_if_stated = true},
    ColumnRule{
        .field = JobField::kLoaderWorkers, .name = "loader_workers", .written_if_stated = true},
    ColumnRule{.field = JobField::kMinGpus, .name = "min_gpus", .written_if_stated = true},
    ColumnRule{.field = JobField::kMaxGpus, .name = "max_gpus", .written_if_stated = true},
};

}  // namespace

const CsvFormat& NativeFormat() {
  static constexpr CsvFormat kFormat{
      .shown = {.name = "native", .help = "Trainyard's own form (duration, iterations or both)"},
      .columns = kNativeColumns,
  };
  return kFormat;
}

}  // namespace trainyard
