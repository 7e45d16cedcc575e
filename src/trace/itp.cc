// SPDX-License-Identifier: Apache-2.0
// The raw Microsoft ITP tables, from which the ElasticFlow traces were made: docs/formats/itp.md.
#include <array>

#include "trace/csv_format.h"

namespace trainyard {
namespace {

constexpr std::array kItpColumns{
    ColumnRule{.field = Native("job_id"), .name = "job_id", .required = true},
    ColumnRule{.field = Native("submit_time"),
               .name = "submission_time",
               .other_name = "submit_time",
               .required = true},
    ColumnRule{.field = Native("duration"), .name = "duration", .required = true},
    ColumnRule{.field = Native("gpus"), .name = "num_gpu", .other_name = "gpus", .required = true},
    ColumnRule{.field = JobColumn::kStatus, .name = "status"},
};

}  // namespace

const CsvFormat& ItpFormat() {
  static constexpr CsvFormat kFormat{
      .shown = {.name = "itp", .help = "Microsoft ITP, raw (no models; failed jobs are left out)"},
      .columns = kItpColumns,
  };
  return kFormat;
}

}  // namespace trainyard
