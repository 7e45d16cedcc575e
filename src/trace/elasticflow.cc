// SPDX-License-Identifier: Apache-2.0
// Traces of the ElasticFlow artifact and of elasticflow-traces: docs/formats/elasticflow.md.
#include <fmt/format.h>

#include <array>
#include <iterator>

#include "base/check.h"
#include "base/decimal.h"
#include "io/csv_field.h"
#include "trace/csv_format.h"

namespace trainyard {
namespace {

constexpr std::array kColumns{
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

void AppendJob(const JobSpec& job, std::string& text) {
  CHECK(job.duration.has_value() && job.iterations.has_value());
  AppendCsvField(job.name, text);
  text += ',';
  AppendSeconds(job.submit.time_since_epoch(), text);
  fmt::format_to(std::back_inserter(text), ",{},", *job.iterations);
  AppendCsvField(job.model, text);
  text += ',';
  if (job.deadline.has_value()) {
    AppendSeconds(job.deadline->time_since_epoch(), text);
  } else {
    text += kNoDeadline;
  }
  fmt::format_to(std::back_inserter(text), ",{},{},", job.batch_size, job.gpus);
  AppendSeconds(*job.duration, text);
  text += job.best_effort ? ",1\n" : ",0\n";
}

}  // namespace

const CsvFormat& ElasticflowFormat() {
  static constexpr CsvFormat kFormat{
      .shown = {.name = "elasticflow",
                .help = "ElasticFlow artifact, elasticflow-traces (derived)"},
      .columns = kColumns,
      .ignores_others = true,
  };
  return kFormat;
}

std::string WriteElasticflowTrace(std::span<const JobSpec> jobs) {
  std::string text = HeaderLine(ElasticflowFormat());
  for (const JobSpec& job : jobs) {
    AppendJob(job, text);
  }
  return text;
}

}  // namespace trainyard
