// SPDX-License-Identifier: Apache-2.0
// Traces of the ElasticFlow artifact and of elasticflow-traces: docs/formats/elasticflow.md.
#include <array>

#include "trace/csv_format.h"

namespace trainyard {
namespace {

constexpr std::array kElasticFlowColumns{
    ColumnRule{.field = Native("job_id"), .name = "job_id", .required = true},
    ColumnRule{.field = Native("submit_time"),
               .name = "submit_time",
               .other_name = "submission_time",
               .required = true},
    ColumnRule{.field = Native("iterations"),
               .name = "iteration",
               .other_name = "num_iteration",
               .required = true},
    ColumnRule{.field = Native("model"), .name = "model_name", .required = true},
    ColumnRule{
        .field = Native("deadline"), .name = "ddl", .other_name = "deadline", .required = true},
    ColumnRule{.field = Native("batch_size"), .name = "batch_size", .required = true},
    ColumnRule{.field = Native("gpus"), .name = "num_gpu", .required = true},
    ColumnRule{.field = Native("duration"), .name = "duration", .required = true},
    ColumnRule{.field = Native("best_effort"), .name = "best_effort"},
};

}  // namespace

const CsvFormat& ElasticflowFormat() {
  static constexpr CsvFormat kFormat{
      .shown = {.name = "elasticflow",
                .help = "ElasticFlow artifact, elasticflow-traces (derived)"},
      .columns = kElasticFlowColumns,
      .ignores_others = true,
  };
  return kFormat;
}

}  // namespace trainyard
