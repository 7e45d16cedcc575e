// SPDX-License-Identifier: Apache-2.0
// Traces of the Chronus simulator: docs/formats/chronus.md.
#include <array>

#include "trace/csv_format.h"

namespace trainyard {
namespace {

constexpr std::array kChronusColumns{
    ColumnRule{.field = Native("job_id"), .name = "job_id", .required = true},
    ColumnRule{.field = Native("user"), .name = "user"},
    ColumnRule{.field = Native("gpus"), .name = "num_gpu", .required = true},
    ColumnRule{.field = Native("submit_time"), .name = "submit_time", .required = true},
    ColumnRule{.field = Native("iterations"), .name = "iterations", .required = true},
    ColumnRule{.field = Native("model"), .name = "model_name", .required = true},
    ColumnRule{.field = Native("duration"), .name = "duration", .required = true},
    ColumnRule{.field = JobColumn::kIgnored, .name = "interval"},
    ColumnRule{.field = Native("target_times"), .name = "expect_time_list", .required = true},
    ColumnRule{.field = Native("target_values"), .name = "expect_value_list", .required = true},
    ColumnRule{.field = Native("best_effort"), .name = "best_effort", .required = true},
    ColumnRule{.field = JobColumn::kTargetKind, .name = "job_type"},
};

constexpr double kMinute = 60;

}  // namespace

const CsvFormat& ChronusFormat() {
  static constexpr CsvFormat kFormat{
      .shown = {.name = "chronus", .help = "Chronus simulator (soft deadlines; in minutes)"},
      .columns = kChronusColumns,
      .unit = kMinute,
      .leaves_out_gpuless = true,
  };
  return kFormat;
}

}  // namespace trainyard
