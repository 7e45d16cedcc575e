// SPDX-License-Identifier: Apache-2.0
// Workloads of the Pollux and Sia simulators: docs/formats/sia.md.
#include <array>

#include "trace/csv_format.h"

namespace trainyard {
namespace {

constexpr std::array kSiaColumns{
    ColumnRule{.field = Native("job_id"), .name = "name", .required = true},
    ColumnRule{.field = Native("submit_time"), .name = "time", .required = true},
    ColumnRule{.field = Native("model"), .name = "application", .required = true},
    ColumnRule{.field = Native("gpus"), .name = "num_replicas", .required = true},
    ColumnRule{.field = Native("batch_size"), .name = "batch_size", .required = true},
};

}  // namespace

const CsvFormat& SiaFormat() {
  static constexpr CsvFormat kFormat{
      .shown = {.name = "sia", .help = "Pollux and Sia workloads (state no work)"},
      .columns = kSiaColumns,
      .ignores_others = true,
      .states_no_work = true,
  };
  return kFormat;
}

}  // namespace trainyard
