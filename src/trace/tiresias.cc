// SPDX-License-Identifier: Apache-2.0
// Traces of the Tiresias simulator: docs/formats/tiresias.md.
#include <array>

#include "trace/csv_format.h"

namespace trainyard {
namespace {

// The simulator takes the work from `duration`; its other columns were for its plots.
constexpr std::array kTiresiasColumns{
    ColumnRule{.field = Native("job_id"), .name = "job_id", .required = true},
    ColumnRule{.field = Native("gpus"), .name = "num_gpu", .required = true},
    ColumnRule{.field = Native("submit_time"), .name = "submit_time", .required = true},
    ColumnRule{.field = Native("model"), .name = "model_name", .required = true},
    ColumnRule{.field = Native("duration"), .name = "duration", .required = true},
    ColumnRule{.field = JobColumn::kIgnored, .name = "iterations"},
    ColumnRule{.field = JobColumn::kIgnored, .name = "interval"},
    ColumnRule{.field = JobColumn::kIgnored, .name = "model_scale"},
};

}  // namespace

const CsvFormat& TiresiasFormat() {
  static constexpr CsvFormat kFormat{
      .shown = {.name = "tiresias", .help = "Tiresias simulator (work is the duration)"},
      .columns = kTiresiasColumns,
  };
  return kFormat;
}

}  // namespace trainyard
