// SPDX-License-Identifier: Apache-2.0
// Traces of the Tiresias simulator: docs/formats/tiresias.md.
#include <array>

#include "trace/csv_format.h"

namespace trainyard {
namespace {

// The simulator takes the work from `duration`; its other columns were for its plots.
constexpr std::array kTiresiasColumns{
    ColumnRule{.field = JobField::kJobId, .name = "job_id", .required = true},
    ColumnRule{.field = JobField::kGpus, .name = "num_gpu", .required = true},
    ColumnRule{.field = JobField::kSubmit, .name = "submit_time", .required = true},
    ColumnRule{.field = JobField::kModel, .name = "model_name", .required = true},
    ColumnRule{.field = JobField::kDuration, .name = "duration", .required = true},
    ColumnRule{.field = JobField::kIgnored, .name = "iterations"},
    ColumnRule{.field = JobField::kIgnored, .name = "interval"},
    ColumnRule{.field = JobField::kIgnored, .name = "model_scale"},
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
