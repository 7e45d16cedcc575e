// SPDX-License-Identifier: Apache-2.0
// Traces of the ElasticFlow artifact and of elasticflow-traces: docs/formats/elasticflow.md.
#include <array>

#include "trace/csv_format.h"

namespace trainyard {
namespace {

constexpr std::array kElasticFlowColumns{
    ColumnRule{.field = JobField::kJobId, .name = "job_id", .required = true},
    ColumnRule{.field = JobField::kSubmit,
               .name = "submit_time",
               .other_name = "submission_time",
               .required = true},
    ColumnRule{.field = JobField::kIterations,
               .name = "iteration",
               .other_name = "num_iteration",
               .required = true},
    ColumnRule{.field = JobField::kModel, .name = "model_name", .required = true},
    ColumnRule{
        .field = JobField::kDeadline, .name = "ddl", .other_name = "deadline", .required = true},
    ColumnRule{.field = JobField::kBatchSize, .name = "batch_size", .required = true},
    ColumnRule{.field = JobField::kGpus, .name = "num_gpu", .required = true},
    ColumnRule{.field = JobField::kDuration, .name = "duration", .required = true},
    ColumnRule{.field = JobField::kBestEffort, .name = "best_effort"},
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
