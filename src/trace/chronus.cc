// SPDX-License-Identifier: Apache-2.0
// Traces of the Chronus simulator: docs/formats/chronus.md.
#include <array>

#include "trace/csv_format.h"

namespace trainyard {
namespace {

constexpr std::array kChronusColumns{
    ColumnRule{.field = JobField::kJobId, .name = "job_id", .required = true},
    ColumnRule{.field = JobField::kUser, .name = "user"},
    ColumnRule{.field = JobField::kGpus, .name = "num_gpu", .required = true},
    ColumnRule{.field = JobField::kSubmit, .name = "submit_time", .required = true},
    ColumnRule{.field = JobField::kIterations, .name = "iterations", .required = true},
    ColumnRule{.field = JobField::kModel, .name = "model_name", .required = true},
    ColumnRule{.field = JobField::kDuration, .name = "duration", .required = true},
    ColumnRule{.field = JobField::kIgnored, .name = "interval"},
    ColumnRule{.field = JobField::kTargets, .name = "expect_time_list", .required = true},
    ColumnRule{.field = JobField::kTargetValues, .name = "expect_value_list", .required = true},
    ColumnRule{.field = JobField::kBestEffort, .name = "best_effort", .required = true},
    ColumnRule{.field = JobField::kTargetKind, .name = "job_type"},
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
