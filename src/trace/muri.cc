// SPDX-License-Identifier: Apache-2.0
// Traces of the Muri simulator: docs/formats/muri.md.
#include <array>

#include "trace/csv_format.h"

namespace trainyard {
namespace {

constexpr std::array kMuriColumns{
    ColumnRule{.field = Native("job_id"), .name = "job_id", .required = true},
    ColumnRule{.field = Native("gpus"), .name = "num_gpu", .required = true},
    ColumnRule{.field = Native("submit_time"),
               .name = "submit_time",
               .required = true,
               .milliseconds = true},
    ColumnRule{.field = Native("iterations"), .name = "iterations", .required = true},
    ColumnRule{.field = Native("model"), .name = "model_name", .required = true},
    ColumnRule{.field = JobColumn::kBatchPerGpu, .name = "batch_size", .required = true},
    ColumnRule{
        .field = Native("duration"), .name = "duration", .required = true, .milliseconds = true},
    ColumnRule{.field = JobColumn::kIgnored, .name = "interval"},
    ColumnRule{.field = Native("iteration_time"),
               .name = "iteration_time",
               .required = true,
               .milliseconds = true},
    ColumnRule{.field = Native("stage_0"),
               .name = "resource_time_0",
               .required = true,
               .milliseconds = true},
    ColumnRule{.field = Native("stage_1"),
               .name = "resource_time_1",
               .required = true,
               .milliseconds = true},
    ColumnRule{.field = Native("stage_2"),
               .name = "resource_time_2",
               .required = true,
               .milliseconds = true},
    ColumnRule{.field = Native("priority"), .name = "priority"},
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
