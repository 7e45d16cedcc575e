// SPDX-License-Identifier: Apache-2.0
// Traces of the Muri simulator: docs/formats/muri.md.
#include <array>

#include "trace/csv_format.h"

namespace trainyard {
namespace {

constexpr std::array kMuriColumns{
    ColumnRule{.field = JobField::kJobId, .name = "job_id", .required = true},
    ColumnRule{.field = JobField::kGpus, .name = "num_gpu", .required = true},
    ColumnRule{
        .field = JobField::kSubmit, .name = "submit_time", .required = true, .milliseconds = true},
    ColumnRule{.field = JobField::kIterations, .name = "iterations", .required = true},
    ColumnRule{.field = JobField::kModel, .name = "model_name", .required = true},
    ColumnRule{.field = JobField::kBatchPerGpu, .name = "batch_size", .required = true},
    ColumnRule{
        .field = JobField::kDuration, .name = "duration", .required = true, .milliseconds = true},
    ColumnRule{.field = JobField::kIgnored, .name = "interval"},
    ColumnRule{.field = JobField::kStageIteration,
               .name = "iteration_time",
               .required = true,
               .milliseconds = true},
    ColumnRule{.field = JobField::kStage0,
               .name = "resource_time_0",
               .required = true,
               .milliseconds = true},
    ColumnRule{.field = JobField::kStage1,
               .name = "resource_time_1",
               .required = true,
               .milliseconds = true},
    ColumnRule{.field = JobField::kStage2,
               .name = "resource_time_2",
               .required = true,
               .milliseconds = true},
    ColumnRule{.field = JobField::kPriority, .name = "priority"},
};

}  // namespace

const CsvFormat& MuriFormat() {
  static constexpr CsvFormat kFormat{
      .shown = {.name = "muri", .help = "Muri simulator (times in ms, stage times of each job)"},
      .columns = kMuriColumns,
  };
  return kFormat;
}

}  // namespace trainyard
