// SPDX-License-Identifier: Apache-2.0
// Trainyard's own trace format: docs/formats/native-trace.md.
#include <fmt/format.h>

#include <array>
#include <iterator>

#include "base/decimal.h"
#include "io/csv_field.h"
#include "trace/csv_format.h"
#include "trace/trace.h"

namespace trainyard {
namespace {

constexpr std::array kColumns{
    ColumnRule{.field = JobField::kJobId, .name = "job_id", .required = true},
    ColumnRule{.field = JobField::kSubmit, .name = "submit_time", .required = true},
    ColumnRule{.field = JobField::kGpus, .name = "gpus", .required = true},
    ColumnRule{.field = JobField::kDuration, .name = "duration"},
    ColumnRule{.field = JobField::kIterations, .name = "iterations"},
    ColumnRule{.field = JobField::kUser, .name = "user"},
    ColumnRule{.field = JobField::kQueue, .name = "queue"},
    ColumnRule{.field = JobField::kModel, .name = "model"},
    ColumnRule{.field = JobField::kBatchSize, .name = "batch_size"},
    ColumnRule{.field = JobField::kDeadline, .name = "deadline"},
    ColumnRule{.field = JobField::kBestEffort, .name = "best_effort"},
};

void AppendJob(const JobSpec& job, std::string& text) {
  AppendCsvField(job.name, text);
  text += ',';
  AppendSeconds(job.submit.time_since_epoch(), text);
  fmt::format_to(std::back_inserter(text), ",{},", job.gpus);
  if (job.duration.has_value()) {
    AppendSeconds(*job.duration, text);
  }
  text += ',';
  if (job.iterations.has_value()) {
    fmt::format_to(std::back_inserter(text), "{}", *job.iterations);
  }
  for (const std::string* name : {&job.user, &job.queue, &job.model}) {
    text += ',';
    AppendCsvField(*name, text);
  }
  text += ',';
  if (job.batch_size > 0) {
    fmt::format_to(std::back_inserter(text), "{}", job.batch_size);
  }
  text += ',';
  if (job.deadline.has_value()) {
    AppendSeconds(job.deadline->time_since_epoch(), text);
  }
  text += job.best_effort ? ",1\n" : ",0\n";
}

}  // namespace

const CsvFormat& NativeFormat() {
  static constexpr CsvFormat kFormat{
      .shown = {.name = "native", .help = "Trainyard's own form (duration, iterations or both)"},
      .columns = kColumns,
  };
  return kFormat;
}

std::string WriteNativeTrace(std::span<const JobSpec> jobs) {
  constexpr std::size_t kUsualRow = 96;
  std::string text = HeaderLine(NativeFormat());
  text.reserve((jobs.size() + 2) * kUsualRow);
  for (const JobSpec& job : jobs) {
    AppendJob(job, text);
  }
  return text;
}

}  // namespace trainyard
